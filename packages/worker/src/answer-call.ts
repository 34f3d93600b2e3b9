// One call from message to reply. The order is fixed: observe (trace, log, metrics), deadline, decode, validate, handler,
// encode, error conversion.
//
// A1 Nothing thrown or rejected here leaves `answerCall`.
// A2 A defect's message stays in the log; the wire gets its code and a fixed sentence.
import type { Bus } from "@flotilla/bus";
import type { FunctionContract } from "@flotilla/contracts";
import { ensureFlotillaError, type FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { Msg } from "@nats-io/transport-node";
import { context } from "@opentelemetry/api";
import { decodeRequest, encodeError, encodeResult, type Reply } from "./body.ts";
import { CallContext } from "./call-context.ts";
import type { Effects } from "./effects.ts";
import { Execution, errorOf, type InFlight, resultWithin } from "./execution.ts";
import { checkKey, type Invocation, readInvocation } from "./invocation.ts";
import { type Observed, observeCall } from "./observe.ts";
import type { Clock, Implementation } from "./types.ts";
import { validateRequest } from "./validate.ts";

export interface CallDeps {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly inFlight: InFlight;
  readonly effects: Effects;
}

export interface ServedFunction {
  readonly contract: FunctionContract;
  readonly handle: Implementation["handle"];
  readonly prepare: Implementation["prepare"];
  readonly observed: Observed;
}

export async function answerCall(deps: CallDeps, served: ServedFunction, message: Msg): Promise<void> {
  deps.inFlight.beginRequest();
  const invocation = readInvocation(served.contract, message.headers, deps.clock.now());
  const observation = observeCall(served.observed, invocation);
  let error: FlotillaError | undefined;
  let reply: Reply;
  try {
    const value = await context.with(observation.context, () => runCall(deps, served, invocation, message));
    reply = await encodeResult(value, deps.bus.claimCheck);
  } catch (thrown) {
    error = ensureFlotillaError(thrown);
    reply = encodeError(error);
  }
  respond(deps, message, reply);
  observation.end(error);
  deps.inFlight.endRequest();
}

async function runCall(deps: CallDeps, served: ServedFunction, invocation: Invocation, message: Msg): Promise<unknown> {
  const request = validateRequest(served.contract, await decodeRequest(message, deps.bus.claimCheck));
  const contextOf = (execution: Execution) => new CallContext(deps, served.contract.id, invocation, execution);
  let prepared: Promise<unknown> | undefined;
  const prepare = (execution: Execution): void => {
    prepared = served.prepare?.(contextOf(execution), request as never);
    // A failure is the handler's to see, if it gets to run.
    prepared?.catch(() => undefined);
  };
  const handle = async (execution: Execution): Promise<unknown> =>
    served.handle(contextOf(execution), request as never, prepared);
  const { deadline, epoch, reclaim, idempotencyKey: key } = invocation;
  if (key !== undefined) checkKey(deps.bus.worker, key);
  const execution =
    key === undefined
      ? runOnce(deps, invocation, handle)
      : deps.effects.join({ key, epoch, deadline, reclaim }, { prepare, handle });
  return resultWithin(execution, deadline, deps.clock.now());
}

/** A call without a key: no record, nobody attaches. */
function runOnce(deps: CallDeps, invocation: Invocation, handle: (run: Execution) => Promise<unknown>): Execution {
  const execution = new Execution(invocation.deadline, invocation.epoch);
  deps.inFlight.begin(execution);
  const work = async (): Promise<unknown> => {
    try {
      return await handle(execution);
    } catch (thrown) {
      throw errorOf(thrown, execution.signal);
    } finally {
      deps.inFlight.end(execution);
    }
  };
  execution.follow(work());
  return execution;
}

/** The caller may be gone, and so may the connection: a keyed result is in its record, any other is asked for again. */
function respond(deps: CallDeps, message: Msg, reply: Reply): void {
  if (message.reply === undefined || message.reply === "") return;
  try {
    message.respond(reply.data, reply.headers === undefined ? {} : { headers: reply.headers });
  } catch (error) {
    deps.logger.warn("a reply could not be sent", { error });
  }
}
