// A call: routed from memory, sent as a request, answered by a value or a typed error.
//
// C3 A request that was under way when the connection dropped is sent again after the reconnect only when running twice
//    cannot hurt: the function is `replay: safe`, or an idempotency key makes the callee attach (I4). Any other is not
//    repeated and is BUS_UNAVAILABLE at its deadline, unless its answer comes: after a restart of the server only a
//    worker whose user may publish to any inbox can still send it, since the right to respond was the server's memory.
// C4 After a reconnect workers need a moment to subscribe again: "nobody there" counts against them only after that.
import { type FunctionContract, subjects } from "@flotilla/contracts";
import { ensureFlotillaError, FlotillaError, invalidInput } from "@flotilla/errors";
import { attributeNames, idAttributesOf, idsOf, isTracing, spanNames } from "@flotilla/telemetry";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { type Attributes, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { z } from "zod";
import { callHeaders } from "./call-headers.ts";
import { cancelledError, isNoResponders, timedOut, typedError, valueOfReply } from "./call-reply.ts";
import { liveTargetOf, type Target, targetOf } from "./call-route.ts";
import type { ClaimCheck } from "./claim-check.ts";
import type { Link } from "./link.ts";
import { pause } from "./patience.ts";
import type { LiveRegistry } from "./registry.ts";
import type { CallOptions } from "./types.ts";

const resubscribeMs = 3_000;
const encoder = new TextEncoder();
const tracer = trace.getTracer("@flotilla/bus");

export interface CallDeps {
  readonly nc: NatsConnection;
  readonly link: Link;
  readonly registry: LiveRegistry;
  readonly claimCheck: ClaimCheck;
  readonly worker: string;
}

export interface Caller {
  call<I extends z.ZodType, O extends z.ZodType>(
    contract: FunctionContract<I, O>,
    payload: z.input<I>,
    options?: CallOptions,
  ): Promise<z.output<O>>;
  callId(functionId: string, payload: unknown, options?: CallOptions): Promise<unknown>;
}

export function createCaller(deps: CallDeps): Caller {
  const callId = (functionId: string, payload: unknown, options: CallOptions = {}): Promise<unknown> =>
    isTracing()
      ? traced(deps, functionId, options, () => send(deps, functionId, payload, options))
      : send(deps, functionId, payload, options);
  return {
    callId,
    async call(contract, payload, options = {}) {
      const timeoutMs = options.timeoutMs ?? contract.timeoutMs;
      const reply = contract.response.safeParse(await callId(contract.id, payload, { ...options, timeoutMs }));
      if (reply.success) return reply.data;
      const where = reply.error.issues[0]?.path.join(".") ?? "";
      throw new FlotillaError("INTERNAL", `the answer of ${contract.id} does not fit its contract at "${where}"`);
    },
  };
}

function traced(
  { worker, registry }: CallDeps,
  functionId: string,
  options: CallOptions,
  run: () => Promise<unknown>,
): Promise<unknown> {
  const { sessionId, messageId, turnId, callId, workspace: workspaceId } = options;
  const given = idAttributesOf({ sessionId, messageId, turnId, callId, workspaceId });
  const attributes: Attributes = {
    ...idAttributesOf(idsOf()),
    ...given,
    [attributeNames.functionId]: functionId,
    [attributeNames.worker]: worker,
  };
  const peer = options.worker ?? registry.resolve(functionId)?.worker;
  if (peer !== undefined) attributes[attributeNames.peer] = peer;
  if (options.attempt !== undefined) attributes[attributeNames.attempt] = options.attempt;
  return tracer.startActiveSpan(spanNames.call(functionId), { kind: SpanKind.CLIENT, attributes }, async (span) => {
    try {
      return await run();
    } catch (error) {
      const { code } = ensureFlotillaError(error);
      span.setAttributes({ [attributeNames.code]: code, [attributeNames.errorType]: code });
      span.setStatus({ code: SpanStatusCode.ERROR, message: code });
      throw error;
    } finally {
      span.end();
    }
  });
}

async function send(deps: CallDeps, functionId: string, payload: unknown, options: CallOptions): Promise<unknown> {
  const timeoutMs = options.timeoutMs ?? targetOf(deps.registry, functionId, options.worker).fn.timeout_ms;
  const deadline = Date.now() + timeoutMs;
  const data = encode(payload);
  for (;;) {
    const target = await liveTargetOf(deps.registry, functionId, options, deadline);
    try {
      return await request(deps, { functionId, target, data, options, deadline });
    } catch (error) {
      if (!isNoResponders(error)) throw error;
      if (Date.now() - deps.link.connectedAt < resubscribeMs) await pause(50);
      else deps.registry.reportNoResponders(target.worker);
    }
  }
}

function encode(payload: unknown): Uint8Array {
  try {
    return encoder.encode(JSON.stringify(payload ?? {}));
  } catch (cause) {
    throw invalidInput(`the payload cannot be written as JSON: ${cause instanceof Error ? cause.message : ""}`);
  }
}

interface Sending {
  readonly functionId: string;
  readonly target: Target;
  readonly data: Uint8Array;
  readonly options: CallOptions;
  readonly deadline: number;
}

async function request(deps: CallDeps, sending: Sending): Promise<unknown> {
  const { functionId, options, deadline } = sending;
  const isRepeatable = sending.target.fn.replay === "safe" || options.idempotencyKey !== undefined;
  const cancelled = rejectOnAbort(functionId, options.signal);
  // All of them are listened to: the answer to an earlier sending can still come.
  const sendings: Promise<Msg>[] = [];
  let wasLost = false;
  let again = Promise.withResolvers<"again">();
  const unfollow = deps.link.onReconnect(() => {
    wasLost = true;
    if (isRepeatable) again.resolve("again");
  });
  try {
    for (;;) {
      await connected(deps.link, deadline, cancelled.promise);
      wasLost = false;
      again = Promise.withResolvers();
      sendings.push(sendOnce(deps, sending));
      const outcome = await Promise.race([...sendings, cancelled.promise, again.promise]);
      if (outcome !== "again") return await valueOfReply(deps.claimCheck, functionId, outcome);
    }
  } catch (error) {
    if (isNoResponders(error)) throw error;
    throw typedError(error, functionId, wasLost || !deps.link.isUp);
  } finally {
    unfollow();
    cancelled.release();
  }
}

async function connected(link: Link, deadline: number, cancelled: Promise<never>): Promise<void> {
  if (link.isUp) return;
  const stop = new AbortController();
  try {
    await Promise.race([link.connected(deadline, stop.signal), cancelled]);
  } finally {
    stop.abort();
  }
}

async function sendOnce(deps: CallDeps, sending: Sending): Promise<Msg> {
  const { functionId, target, options, deadline, data } = sending;
  const headers = callHeaders(deps.worker, functionId, options, deadline - Date.now());
  const body = await deps.claimCheck.encode(data, headers);
  const timeout = deadline - Date.now();
  if (timeout < 1) throw timedOut(functionId);
  return deps.nc.request(subjects.call(target.worker, functionId), body, { headers, timeout });
}

/** By hand, not by a controller of its own: this runs for every call. */
function rejectOnAbort(
  functionId: string,
  signal: AbortSignal | undefined,
): { promise: Promise<never>; release: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  const abort = (): void => reject(cancelledError(functionId));
  if (signal?.aborted === true) abort();
  signal?.addEventListener("abort", abort, { once: true });
  return { promise, release: () => signal?.removeEventListener("abort", abort) };
}
