// demo::effects
import { demoEffects } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import type { EffectLog } from "../adapters/effect-log.ts";
import { textOf } from "../domain/arguments.ts";

export function makeEffects(log: EffectLog) {
  return implement(demoEffects, async (_context, { session_id: asked }) => {
    const isOne = asked !== undefined && asked !== null && asked !== "";
    const effects = await log.read(isOne ? textOf(asked) : undefined);
    return { effects: effects.map((effect) => ({ ...effect })) };
  });
}
