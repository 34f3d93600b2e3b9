// What a request's headers say (wire.md 1): caller, time left, identity of the effect, ids, and the sender's trace.
import { type FunctionContract, headerNames } from "@flotilla/contracts";
import { invalidInput } from "@flotilla/errors";
import { type CallIds, extractContext, idsOf } from "@flotilla/telemetry";
import type { MsgHdrs } from "@nats-io/transport-node";
import type { Context } from "@opentelemetry/api";

export interface Invocation {
  readonly caller: string;
  readonly workspace: string;
  /** Epoch ms. */
  readonly deadline: number;
  readonly ids: CallIds;
  readonly epoch: number;
  readonly attempt: number;
  readonly idempotencyKey: string | undefined;
  readonly reclaim: number | undefined;
  readonly parent: Context;
}

/** The longest delay of a timer. */
const maxTimeoutMs = 2_147_483_647;
/** The parts of a subject; a key is the end of one. */
const keyPattern = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

/** Missing and malformed headers count as absent. */
export function readInvocation(contract: FunctionContract, headers: MsgHdrs | undefined, now: number): Invocation {
  const values = new Map<string, string>();
  if (headers !== undefined) for (const [name, [value]] of headers) values.set(name, value ?? "");
  const parent = extractContext(values);
  const ids = idsOf(parent);
  const timeoutMs = numberOf(values.get(headerNames.timeoutMs)) ?? contract.timeoutMs;
  return {
    caller: values.get(headerNames.caller) || "unknown",
    workspace: values.get(headerNames.workspace) || ids.workspaceId || "default",
    deadline: now + Math.min(timeoutMs, maxTimeoutMs),
    ids,
    epoch: numberOf(values.get(headerNames.epoch)) ?? 0,
    attempt: numberOf(values.get(headerNames.attempt)) ?? 1,
    idempotencyKey: values.get(headerNames.idempotencyKey) || undefined,
    reclaim: numberOf(values.get(headerNames.reclaim)),
    parent,
  };
}

/** A worker keeps outcome records only under its own name. */
export function checkKey(worker: string, key: string): void {
  if (keyPattern.test(key) && key.startsWith(`${worker}.`) && key.length <= 512) return;
  throw invalidInput(`an idempotency key for this worker looks like ${worker}.<id>[.<id>]`, headerNames.idempotencyKey);
}

function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
}
