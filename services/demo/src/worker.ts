// The demo worker as a value.
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { createEffectLog } from "./adapters/effect-log.ts";
import { createProgress } from "./adapters/progress.ts";
import { makeEffects } from "./functions/effects.ts";
import { makeQuickFunctions } from "./functions/quick.ts";
import { makeShip } from "./functions/ship.ts";
import { makeSlow } from "./functions/slow.ts";

export const definition: WorkerDefinition = {
  name: "demo",
  build({ bus, clock }) {
    const deps = { log: createEffectLog(bus), clock, reportProgress: createProgress(bus.nc) };
    return defineWorker({
      name: "demo",
      version: "0.1.0",
      functions: [...makeQuickFunctions(deps), makeShip(deps), makeSlow(deps), makeEffects(deps.log)],
    });
  },
};
