// The demo functions: each execution that starts is logged durably before its effect, and again when it has ended.
import { demoEcho, demoEffects, demoFail, demoLookup, demoRefund, demoShip, demoSlow } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { type Clock, type HandlerContext, type Implementation, implement } from "@flotilla/worker";
import type { EffectRecord, EffectsLog } from "../adapters/effects-log.ts";
import { echoOf, failureCodeOf, orderOf, refundOf, shipmentOf, sleepOf } from "../domain/answers.ts";

export interface DemoDeps {
  readonly log: EffectsLog;
  readonly clock: Clock;
  /** Contract: publishes how far a slow call is, once a second; must not throw. */
  readonly progress: (context: HandlerContext, sleptMs: number, ofMs: number) => void;
}

const progressMs = 1_000;

export function makeDemoFunctions(deps: DemoDeps): Implementation[] {
  const effect = effectOf(deps);
  return [
    implement(demoEcho, (context, args) => effect(context, args, () => echoOf(args))),
    implement(demoLookup, (context, args) => effect(context, args, () => orderOf(args.order))),
    implement(demoRefund, (context, args) => effect(context, args, () => refundOf(args))),
    implement(demoShip, (context, args) =>
      effect(context, args, async () => {
        await rest(deps, context, sleepOf(args.ms));
        return shipmentOf(args.order);
      }),
    ),
    implement(demoSlow, (context, args) =>
      effect(context, args, async () => {
        const ms = sleepOf(args.ms);
        await rest(deps, context, ms);
        return { slept: ms };
      }),
    ),
    implement(demoFail, (context, args) =>
      effect(context, args, () => {
        const code = failureCodeOf(args.code);
        throw new FlotillaError(code, `demo::fail was asked to fail with ${code}`);
      }),
    ),
    implement(demoEffects, async (_context, { session_id: sessionId }) => ({
      effects: (await deps.log.read(typeof sessionId === "string" && sessionId !== "" ? sessionId : undefined)).map(
        (record) => ({ ...record }),
      ),
    })),
  ];
}

type Effect = <T>(context: HandlerContext, args: unknown, act: () => T | Promise<T>) => Promise<T>;

function effectOf(deps: DemoDeps): Effect {
  return async (context, args, act) => {
    const record = (phase: EffectRecord["phase"]): Promise<void> =>
      deps.log.append(recordOf(deps, context, args, phase));
    await record("start");
    try {
      const result = await act();
      await record("done");
      return result;
    } catch (error) {
      await record("aborted");
      throw error;
    }
  };
}

function recordOf(deps: DemoDeps, context: HandlerContext, args: unknown, phase: EffectRecord["phase"]): EffectRecord {
  return {
    function_id: context.functionId,
    session_id: context.sessionId ?? null,
    function_call_id: context.callId ?? null,
    idempotency_key: context.idempotencyKey ?? null,
    epoch: context.epoch,
    args,
    at: deps.clock.now(),
    phase,
  };
}

/** Sleeps and says how far it is; ends at once with CANCELLED when the call is cancelled. */
async function rest(deps: DemoDeps, context: HandlerContext, ms: number): Promise<void> {
  for (let slept = 0; slept < ms; ) {
    const next = Math.min(progressMs, ms - slept);
    await deps.clock.sleep(next, context.signal);
    if (context.signal.aborted) throw new FlotillaError("CANCELLED", `${context.functionId} was cancelled`);
    slept += next;
    deps.progress(context, slept, ms);
  }
}
