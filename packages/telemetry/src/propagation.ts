// Trace context and ids across the bus: W3C `traceparent`, `tracestate` and `baggage` in message headers.
//
// P1 The ids in baggage are part of the product (a handler's session and message come from them), so they travel whether
//    or not telemetry is on (I15).
import {
  type Baggage,
  type BaggageEntry,
  type Context,
  context,
  ProxyTracerProvider,
  propagation,
  ROOT_CONTEXT,
  type TextMapGetter,
  type TextMapSetter,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from "@opentelemetry/core";
import { attributeNames } from "./names.ts";

/** What NATS headers, and `Map`-like carriers, have in common. */
export interface HeadersLike {
  get(name: string): string | undefined;
  set(name: string, value: string): unknown;
  keys(): Iterable<string>;
}

/** The ids that travel as baggage. */
export interface CallIds {
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  readonly functionId?: string | undefined;
  readonly workspaceId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly callId?: string | undefined;
}

const baggageKeys = {
  sessionId: attributeNames.sessionId,
  messageId: attributeNames.messageId,
  functionId: attributeNames.functionId,
  workspaceId: attributeNames.workspaceId,
  turnId: attributeNames.turnId,
  callId: attributeNames.callId,
} as const satisfies Record<keyof CallIds, string>;
const idNames = Object.keys(baggageKeys) as (keyof CallIds)[];
/** Other values are dropped: 1 to 128 printable ASCII characters. */
const validId = /^[\x21-\x7e]{1,128}$/;

const propagator = new CompositePropagator({
  propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
});

const setter: TextMapSetter<HeadersLike> = {
  set: (headers, name, value) => {
    headers.set(name, value);
  },
};
const getter: TextMapGetter<HeadersLike> = {
  get: (headers, name) => {
    const value = headers.get(name);
    return value === "" ? undefined : value;
  },
  keys: (headers) => [...headers.keys()],
};

let isRegistered = false;

/** Makes contexts follow async code in this process. Cheap and idempotent; works without an SDK. */
export function registerPropagation(): void {
  if (isRegistered) return;
  isRegistered = true;
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(propagator);
}

/** What a proxy without a provider delegates to. */
const noProvider = new ProxyTracerProvider().getDelegate();

/** Whether spans go anywhere in this process; makers of spans skip the work otherwise. */
export function isTracing(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegate() !== noProvider;
}

/** Writes the trace context and baggage of `source` into the headers, with `ids` over the ones it has. */
export function injectContext(headers: HeadersLike, ids: CallIds = {}, source: Context = context.active()): void {
  propagator.inject(withIds(source, ids), headers, setter);
}

/** The sender's context; an empty one when the headers carry none. */
export function extractContext(headers: HeadersLike | undefined): Context {
  return headers === undefined ? ROOT_CONTEXT : propagator.extract(ROOT_CONTEXT, headers, getter);
}

/** `source` with these ids in its baggage; undefined ones keep what is there. */
export function withIds(source: Context, ids: CallIds): Context {
  let baggage: Baggage | undefined;
  for (const name of idNames) {
    const value = ids[name];
    if (value === undefined || !validId.test(value)) continue;
    baggage ??= propagation.getBaggage(source) ?? propagation.createBaggage();
    const entry: BaggageEntry = { value };
    baggage = baggage.setEntry(baggageKeys[name], entry);
  }
  return baggage === undefined ? source : propagation.setBaggage(source, baggage);
}

/** The ids in a context's baggage. */
export function idsOf(source: Context = context.active()): CallIds {
  const baggage = propagation.getBaggage(source);
  if (baggage === undefined) return {};
  const ids: Partial<Record<keyof CallIds, string>> = {};
  for (const name of idNames) {
    const value = baggage.getEntry(baggageKeys[name])?.value;
    if (value !== undefined && validId.test(value)) ids[name] = value;
  }
  return ids;
}
