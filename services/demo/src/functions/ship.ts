// demo::ship
import { demoShip } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import { msOf, textOf } from "../domain/arguments.ts";
import { referenceOf } from "../domain/orders.ts";
import { type EffectDeps, performEffect } from "./perform-effect.ts";

export function makeShip(deps: EffectDeps) {
  return implement(demoShip, (context, args) =>
    performEffect(deps, context, args, async () => {
      await deps.clock.sleep(msOf(args.ms, 0), context.signal);
      context.signal.throwIfAborted();
      const order = textOf(args.order);
      // Repeated with the same key, it is the same shipment.
      return { order, shipped: true, tracking: referenceOf("TR", order, context.idempotencyKey ?? "") };
    }),
  );
}
