// demo::echo, demo::lookup, demo::refund and demo::fail
import { demoEcho, demoFail, demoLookup, demoRefund } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { type Implementation, implement } from "@flotilla/worker";
import { errorCodeOf, numberOf, repeated, textOf } from "../domain/arguments.ts";
import { orderOf, referenceOf } from "../domain/orders.ts";
import { type EffectDeps, performEffect } from "./perform-effect.ts";

export function makeQuickFunctions(deps: EffectDeps): Implementation[] {
  return [
    implement(demoEcho, (context, args) =>
      performEffect(deps, context, args, () => repeated(textOf(args.text), args.repeat)),
    ),
    implement(demoLookup, (context, args) => performEffect(deps, context, args, () => orderOf(textOf(args.order)))),
    implement(demoRefund, (context, args) =>
      performEffect(deps, context, args, () => {
        const order = textOf(args.order);
        const amount = numberOf(args.amount, orderOf(order).total);
        const refund_id = referenceOf("RF", order, context.idempotencyKey ?? "", context.callId ?? "");
        return { order, refunded: true, amount, currency: "USD", refund_id };
      }),
    ),
    implement(demoFail, (context, args) =>
      performEffect(deps, context, args, () => {
        const code = errorCodeOf(args.code);
        throw new FlotillaError(code, `the demo failed with ${code}, as asked`);
      }),
    ),
  ];
}
