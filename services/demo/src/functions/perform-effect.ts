// The frame around every demo function: its start is durable before anything happens, its end is recorded after.
import { idPattern } from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import type { Clock, HandlerContext } from "@flotilla/worker";
import type { Effect, EffectLog } from "../adapters/effect-log.ts";
import type { Args } from "../domain/arguments.ts";

export interface EffectDeps {
  readonly log: EffectLog;
  readonly clock: Clock;
}

/** `work` runs only when the record of its start is stored (I4). */
export async function performEffect<T>(
  deps: EffectDeps,
  context: HandlerContext,
  args: Args,
  work: () => Promise<T> | T,
): Promise<T> {
  const record = (phase: Effect["phase"], error?: string): Effect => ({
    function_id: context.functionId,
    session_id: sessionOf(context),
    function_call_id: context.callId ?? null,
    idempotency_key: context.idempotencyKey ?? null,
    epoch: context.epoch,
    args,
    at: deps.clock.now(),
    phase,
    ...(error === undefined ? {} : { error }),
  });
  await deps.log.append(record("start"));
  try {
    context.signal.throwIfAborted();
    const value = await work();
    await recordEnd(deps, context, record("done"));
    return value;
  } catch (error) {
    const end = context.signal.aborted ? record("aborted") : record("done", ensureFlotillaError(error).code);
    await recordEnd(deps, context, end);
    throw error;
  }
}

/** The effect has happened: its result must not be lost because the log of its end cannot be written. */
async function recordEnd(deps: EffectDeps, context: HandlerContext, effect: Effect): Promise<void> {
  try {
    await deps.log.append(effect);
  } catch (error) {
    context.logger.warn("the end of a demo effect could not be recorded", { phase: effect.phase, error });
  }
}

function sessionOf(context: HandlerContext): string | null {
  const { sessionId } = context;
  return sessionId !== undefined && idPattern.test(sessionId) ? sessionId : null;
}
