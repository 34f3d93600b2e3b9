// The demo worker as a value: functions for first runs, tests and crash tests.
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { createEffectsLog } from "./adapters/effects-log.ts";
import { makeDemoFunctions } from "./functions/effects.ts";

export const definition: WorkerDefinition = {
  name: "demo",
  build({ bus, clock, logger }) {
    const functions = makeDemoFunctions({
      log: createEffectsLog(bus),
      clock,
      progress: (context, sleptMs, ofMs) => {
        logger.debug("a slow call goes on", { call_id: context.callId, slept_ms: sleptMs, of_ms: ofMs });
      },
    });
    return defineWorker({ name: "demo", version: "0.1.0", functions });
  },
};
