// A call: routed from memory, sent as a request, answered by a value or a typed error.
//
// C1 No look-up on the call path: the route comes from the registry's table.
// C2 None live but in a manifest: wait until the deadline, then WORKER_UNAVAILABLE. In no manifest: FUNCTION_NOT_FOUND at once.
// C3 A request that was in flight when the connection dropped is sent again only if running twice cannot hurt: the
//    function is `replay: safe`, or an idempotency key makes the callee attach (I4).
import { defaultGrants, type FunctionContract, headerNames, subjects, timings } from "@flotilla/contracts";
import { type ErrorBody, errorFromBody, FlotillaError } from "@flotilla/errors";
import { injectContext, isTracing } from "@flotilla/telemetry";
import { context as otelContext, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { errors as natsErrors, headers as natsHeaders, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node";
import type { z } from "zod";
import type { ClaimCheck } from "./claim-check.ts";
import { isPermission } from "./journal-errors.ts";
import type { CallOptions, Registry, Route } from "./types.ts";

export interface CallDeps {
  readonly nc: NatsConnection;
  readonly registry: Registry;
  readonly claimCheck: ClaimCheck;
  readonly worker: string;
  /** Resolves at the next reconnect. */
  readonly reconnected: (signal: AbortSignal) => Promise<void>;
  readonly isConnected: () => boolean;
}

export interface Caller {
  call<I extends z.ZodType, O extends z.ZodType>(contract: FunctionContract<I, O>, payload: z.input<I>, options?: CallOptions): Promise<z.output<O>>;
  callId(functionId: string, payload: unknown, options?: CallOptions): Promise<unknown>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const tracer = trace.getTracer("@flotilla/bus");

export function createCaller(deps: CallDeps): Caller {
  const callId = (functionId: string, payload: unknown, options: CallOptions = {}): Promise<unknown> => {
    if (!isTracing()) return send(deps, functionId, payload, options);
    return tracer.startActiveSpan(`call ${functionId}`, { kind: SpanKind.CLIENT, attributes: { "function.id": functionId } }, async (span) => {
      try {
        return await send(deps, functionId, payload, options);
      } catch (error) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof FlotillaError ? error.code : "INTERNAL" });
        throw error;
      } finally {
        span.end();
      }
    });
  };
  return {
    callId,
    async call(contract, payload, options = {}) {
      const timeoutMs = options.timeoutMs ?? contract.timeoutMs;
      const reply = contract.response.safeParse(await callId(contract.id, payload, { ...options, timeoutMs }));
      if (reply.success) return reply.data;
      throw new FlotillaError("INTERNAL", `the answer of ${contract.id} does not fit its contract: ${reply.error.message}`);
    },
  };
}

async function send(deps: CallDeps, functionId: string, payload: unknown, options: CallOptions): Promise<unknown> {
  const first = deps.registry.resolve(functionId);
  const timeoutMs = options.timeoutMs ?? first?.fn.timeout_ms ?? timings.toolTimeoutMs;
  const deadline = Date.now() + timeoutMs;
  const data = encoder.encode(JSON.stringify(payload ?? {}));
  for (;;) {
    if (options.signal?.aborted === true) throw new FlotillaError("CANCELLED", `the call of ${functionId} was cancelled`);
    const worker = await workerOf(deps, functionId, options, deadline);
    try {
      return await request(deps, { functionId, worker, data, options, deadline });
    } catch (error) {
      if (!isNoResponders(error)) throw error;
      deps.registry.reportNoResponders(worker);
    }
  }
}

/** The worker to ask; waits while the function is known and nobody live serves it (C2). */
async function workerOf(deps: CallDeps, functionId: string, options: CallOptions, deadline: number): Promise<string> {
  for (;;) {
    const route = deps.registry.resolve(functionId);
    const chosen = pinned(deps, options.worker) ?? (route?.live === true ? route.worker : null);
    if (chosen !== null) return chosen;
    if (route === null && !isKnownWorker(deps, options.worker)) throw functionNotFound(deps, functionId);
    const left = deadline - Date.now();
    if (left <= 0) throw new FlotillaError("WORKER_UNAVAILABLE", `no worker that offers ${functionId} is live`, { retryAfterMs: 1_000 });
    await deps.registry.changed(Math.min(left, 1_000), options.signal);
    if (options.signal?.aborted === true) throw new FlotillaError("CANCELLED", `the call of ${functionId} was cancelled`);
  }
}

/** The worker that the caller asked for, once it is live. */
function pinned(deps: CallDeps, worker: string | undefined): string | null {
  if (worker === undefined) return null;
  const entry = deps.registry.workers().find((candidate) => candidate.manifest.worker === worker);
  return entry !== undefined && entry.instances.length > 0 ? worker : null;
}

function isKnownWorker(deps: CallDeps, worker: string | undefined): boolean {
  return worker !== undefined && deps.registry.workers().some((entry) => entry.manifest.worker === worker);
}

interface Sending {
  readonly functionId: string;
  readonly worker: string;
  readonly data: Uint8Array;
  readonly options: CallOptions;
  readonly deadline: number;
}

async function request(deps: CallDeps, sending: Sending): Promise<unknown> {
  const { functionId, worker, options, deadline } = sending;
  const subject = subjects.call(worker, functionId);
  for (;;) {
    const left = deadline - Date.now();
    if (left <= 0) throw timeout(functionId);
    const headers = headersOf(deps, functionId, options, left);
    const body = await deps.claimCheck.encode(sending.data, headers);
    const stop = new AbortController();
    try {
      const reply = await Promise.race([
        deps.nc.request(subject, body, { headers, timeout: left }),
        cancelled(functionId, options.signal, stop.signal),
        connectionLost(deps, sending, stop.signal),
      ]);
      if (reply === "again") continue;
      return await valueOf(deps, functionId, reply);
    } catch (error) {
      throw typed(error, functionId);
    } finally {
      stop.abort();
    }
  }
}

/** C3: only after a reconnect can anyone tell; what may not be repeated waits for its deadline. */
async function connectionLost(deps: CallDeps, sending: Sending, signal: AbortSignal): Promise<"again"> {
  await deps.reconnected(signal);
  const isSafe = deps.registry.resolve(sending.functionId)?.fn.replay === "safe";
  if (signal.aborted || !(isSafe || sending.options.idempotencyKey !== undefined)) return new Promise(() => {});
  return "again";
}

function cancelled(functionId: string, signal: AbortSignal | undefined, stop: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(new FlotillaError("CANCELLED", `the call of ${functionId} was cancelled`));
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort, { once: true, signal: stop });
  });
}

function headersOf(deps: CallDeps, functionId: string, options: CallOptions, leftMs: number): MsgHdrs {
  const headers = natsHeaders();
  headers.set(headerNames.caller, options.caller ?? deps.worker);
  headers.set(headerNames.timeoutMs, String(Math.max(1, Math.floor(leftMs))));
  const optional: [string, string | number | undefined][] = [
    [headerNames.workspace, options.workspace],
    [headerNames.idempotencyKey, options.idempotencyKey],
    [headerNames.epoch, options.epoch],
    [headerNames.attempt, options.attempt],
    [headerNames.digest, options.digest],
    [headerNames.reclaim, options.reclaim],
  ];
  for (const [name, value] of optional) if (value !== undefined) headers.set(name, String(value));
  const { sessionId, messageId, turnId, callId } = options;
  injectContext(headers, { sessionId, messageId, turnId, callId, functionId, workspaceId: options.workspace }, otelContext.active());
  return headers;
}

async function valueOf(deps: CallDeps, functionId: string, reply: Msg): Promise<unknown> {
  const code = reply.headers?.get(headerNames.errorCode) ?? "";
  const data = await deps.claimCheck.decode(reply.data, reply.headers);
  const body = parseJson(data);
  if (code !== "") throw errorFromBody(errorBody(code, reply.headers?.get(headerNames.errorMessage) ?? "", body));
  if (body === undefined) throw new FlotillaError("INTERNAL", `the answer of ${functionId} is not JSON`);
  return body;
}

function errorBody(code: string, message: string, body: unknown): ErrorBody {
  const fields = typeof body === "object" && body !== null ? (body as Partial<ErrorBody>) : {};
  return { ...fields, code, message: message === "" ? (fields.message ?? code) : message };
}

/** Undefined when it is not JSON; an empty reply is null. */
function parseJson(data: Uint8Array): unknown {
  if (data.length === 0) return null;
  try {
    return JSON.parse(decoder.decode(data)) as unknown;
  } catch {
    return undefined;
  }
}

function isNoResponders(error: unknown): boolean {
  return error instanceof natsErrors.NoRespondersError || (error instanceof natsErrors.RequestError && error.isNoResponders());
}

function typed(error: unknown, functionId: string): unknown {
  if (error instanceof FlotillaError || isNoResponders(error)) return error;
  if (isPermission(error)) return new FlotillaError("BUS_PERMISSION", `this bus user may not call ${functionId}`, { cause: error });
  if (error instanceof natsErrors.TimeoutError || (error instanceof Error && error.cause instanceof natsErrors.TimeoutError)) return timeout(functionId);
  return new FlotillaError("BUS_UNAVAILABLE", `the call of ${functionId} could not be sent`, { cause: error });
}

function timeout(functionId: string): FlotillaError {
  return new FlotillaError("TIMEOUT", `${functionId} did not answer before the deadline`);
}

function functionNotFound(deps: CallDeps, functionId: string): FlotillaError {
  const near = nearest(functionId, deps.registry.functions());
  const namespace = functionId.split("::", 1)[0] ?? "";
  const hint = near === null ? "" : `; did you mean ${near}?`;
  const details = near === null ? {} : { did_you_mean: near };
  const isReserved = Object.hasOwn(defaultGrants, namespace);
  const reserved = isReserved && near === null ? " (its namespace is reserved; see registry.grants)" : "";
  return new FlotillaError("FUNCTION_NOT_FOUND", `no worker offers ${functionId}${hint}${reserved}`, { field: "function_id", details });
}

/** The most similar known id, when it is similar enough to be a slip. */
export function nearest(id: string, routes: readonly Route[]): string | null {
  let best: { id: string; distance: number } | null = null;
  for (const { fn } of routes) {
    const distance = editDistance(id, fn.id);
    if (best === null || distance < best.distance) best = { id: fn.id, distance };
  }
  return best !== null && best.distance <= Math.max(2, Math.floor(id.length / 4)) ? best.id : null;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((next[j - 1] ?? 0) + 1, (row[j] ?? 0) + 1, substituted));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
