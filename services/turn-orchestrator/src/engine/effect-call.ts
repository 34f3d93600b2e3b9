// One effectful call: sent once, attached to when it already runs, written off only with proof (I4).
//
// E1 A call is sent under its journalled key; the callee attaches a second request to the first execution.
// E2 What a lost reply hides, the outcome record tells: it is read every second while the call is open.
// E3 `unknown` needs a `running` record of a dead instance; `not started` needs our own `cancelled` record.
import { type Bus, isBlobRef, type OutcomeRecord } from "@flotilla/bus";
import { subjects } from "@flotilla/contracts";
import { type ErrorBody, ensureFlotillaError, FlotillaError, isFlotillaError } from "@flotilla/errors";
import { isInstanceDead } from "@flotilla/worker";

export interface EffectSpec {
  readonly key: string;
  readonly worker: string;
  readonly functionId: string;
  readonly payload: unknown;
  readonly replay: "never" | "safe" | "keyed";
  readonly timeoutMs: number;
  readonly attempt: number;
  readonly epoch: number;
  readonly sessionId: string;
  readonly turnId: string;
  readonly messageId: string;
  readonly callId: string | undefined;
  readonly workspace: string;
  /** When the intent was committed, epoch ms. */
  readonly intendedAt: number;
}

export type EffectResult =
  | { readonly kind: "done"; readonly result: unknown }
  | { readonly kind: "failed"; readonly error: ErrorBody }
  /** It did not start and never will. */
  | { readonly kind: "not_started"; readonly error: ErrorBody }
  /** It was running when it was written off: it may have taken effect. */
  | { readonly kind: "in_flight"; readonly error: ErrorBody }
  /** Its worker died in mid-effect. */
  | { readonly kind: "unknown" };

const watchMs = 1_000;
const ended = new FlotillaError("CANCELLED", "the call is no longer waited for");
/** A `never` call without a record is sent again only while its record could not have expired (7 days). */
const resendWindowMs = 6 * 24 * 3600 * 1000;
const transportCodes = new Set([
  "TIMEOUT",
  "WORKER_UNAVAILABLE",
  "BUS_UNAVAILABLE",
  "FUNCTION_NOT_FOUND",
  "SHUTTING_DOWN",
  // The callee found the record of a dead instance; whether it may run again is decided here.
  "OUTCOME_UNKNOWN",
]);

export interface EffectDeps {
  readonly bus: Bus;
  readonly now: () => number;
}

/**
 * Runs until the call's fate is known or its deadline has passed. `isResumed`: a former owner recorded the intent and may
 * have sent it.
 */
export async function runEffect(
  deps: EffectDeps,
  spec: EffectSpec,
  isResumed: boolean,
  signal: AbortSignal,
): Promise<EffectResult> {
  const deadline = deps.now() + spec.timeoutMs;
  let reclaim: number | undefined;
  let mayHaveRun = isResumed;
  for (;;) {
    if (mayHaveRun) {
      const known = await settledByRecord(deps, spec);
      if (known?.kind === "dead") {
        if (spec.replay === "never") return { kind: "unknown" };
        reclaim = known.revision;
      } else if (known !== null && known.kind !== "running") return known;
      if (known === null && spec.replay === "never" && deps.now() - spec.intendedAt > resendWindowMs)
        return writeOff(deps, spec, "the call is too old to be sent again");
    }
    const answer = await sendAndWatch(deps, spec, { deadline, reclaim, signal });
    if (answer !== "resend") return answer;
    mayHaveRun = true;
    reclaim = undefined;
    if (deps.now() >= deadline) return writeOff(deps, spec, `no answer within ${spec.timeoutMs} ms`);
  }
}

/** Cancels a running execution; it answers with what it has. */
export function cancelEffect(bus: Bus, worker: string, key: string, reason: string, epoch: number): void {
  bus.nc.publish(subjects.cancel(worker, key), JSON.stringify({ reason, epoch }));
}

/** Makes sure that the call has no future: proof that it never started, its real result, or that it was in flight. */
export async function writeOff(deps: EffectDeps, spec: EffectSpec, reason: string): Promise<EffectResult> {
  const error: ErrorBody = { code: "CANCELLED", message: reason };
  const record: OutcomeRecord = { status: "cancelled", by: deps.bus.instance, epoch: spec.epoch, at: deps.now() };
  // An unknown fate of this write is told by the record that is read next.
  const revision = await patiently(deps, () => deps.bus.outcomes.write(spec.key, record, 0));
  if (revision !== null) return { kind: "not_started", error };
  // Whether its worker lives makes no difference here, and a frozen one would take seconds to tell.
  const known = await settledByRecord(deps, spec, { asksInstance: false });
  if (known === null) return { kind: "not_started", error };
  if (known.kind === "dead" || known.kind === "running") return { kind: "in_flight", error };
  return known;
}

/** Waits until a call that runs somewhere has ended, at most `ms`. */
export async function untilSettled(deps: EffectDeps, spec: EffectSpec, ms: number): Promise<void> {
  const giveUpAt = deps.now() + ms;
  while (deps.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if ((await settledByRecord(deps, spec, { asksInstance: false }))?.kind !== "running") return;
  }
}

const patienceMs = 120_000;

/** While the bus is away nobody can tell the fate of a call: ask again until it is back. */
export async function patiently<T>(deps: EffectDeps, ask: () => Promise<T>): Promise<T> {
  const giveUpAt = deps.now() + patienceMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (isFlotillaError(error) && error.disposition !== "retry") throw error;
      if (deps.bus.nc.isClosed() || deps.now() > giveUpAt)
        throw new FlotillaError("BUS_UNAVAILABLE", "the bus did not answer", { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

type Known = EffectResult | { readonly kind: "running" } | { readonly kind: "dead"; readonly revision: number };

interface Reading {
  /** Otherwise a running call is not told from one whose worker died. */
  readonly asksInstance: boolean;
}

function settledByRecord(
  deps: EffectDeps,
  spec: EffectSpec,
  reading: Reading = { asksInstance: true },
): Promise<Known | null> {
  return patiently(deps, () => readRecord(deps, spec, reading));
}

async function readRecord(deps: EffectDeps, spec: EffectSpec, reading: Reading): Promise<Known | null> {
  const found = await deps.bus.outcomes.read(spec.key, { fresh: true });
  if (found === null) return null;
  const { record, revision } = found;
  switch (record.status) {
    case "done":
      return doneBy(deps.bus, record.result);
    case "failed":
      return { kind: "failed", error: record.error };
    case "cancelled":
      return { kind: "not_started", error: { code: "CANCELLED", message: "the call was cancelled before it started" } };
    case "running":
      return reading.asksInstance && (await isInstanceDead(deps.bus, record.worker, record.instance))
        ? { kind: "dead", revision }
        : { kind: "running" };
    default:
      return record satisfies never;
  }
}

/** A result whose body is lost cannot be had by asking again: the call has ended, and how is not known any more. */
export async function doneBy(bus: Bus, value: unknown): Promise<EffectResult> {
  if (!isBlobRef(value)) return { kind: "done", result: value };
  try {
    return { kind: "done", result: await bus.blobs.getJson(value) };
  } catch (error) {
    if (!isFlotillaError(error) || error.disposition === "retry") throw error;
    return { kind: "failed", error: { code: error.code, message: "the call has ended, but its result is lost" } };
  }
}

interface Sending {
  readonly deadline: number;
  readonly reclaim: number | undefined;
  readonly signal: AbortSignal;
}

/** Sends the request and watches its record; `resend` when neither the reply nor the record will come from this sending. */
async function sendAndWatch(deps: EffectDeps, spec: EffectSpec, sending: Sending): Promise<EffectResult | "resend"> {
  const stop = new AbortController();
  // With a reason of our own: the default one is an exception with a stack, made for every call.
  const end = (): void => stop.abort(ended);
  sending.signal.addEventListener("abort", end, { once: true });
  if (sending.signal.aborted) end();
  const { signal } = stop;
  try {
    return await Promise.race([send(deps, spec, sending, signal), watchRecord(deps, spec, sending.deadline, signal)]);
  } finally {
    sending.signal.removeEventListener("abort", end);
    end();
  }
}

async function send(
  deps: EffectDeps,
  spec: EffectSpec,
  sending: Sending,
  signal: AbortSignal,
): Promise<EffectResult | "resend"> {
  try {
    const result = await deps.bus.callId(spec.functionId, spec.payload, {
      worker: spec.worker,
      timeoutMs: Math.max(1, sending.deadline - deps.now()),
      idempotencyKey: spec.key,
      epoch: spec.epoch,
      attempt: spec.attempt,
      caller: spec.callId === undefined ? undefined : "agent",
      sessionId: spec.sessionId,
      turnId: spec.turnId,
      messageId: spec.messageId,
      callId: spec.callId,
      workspace: spec.workspace,
      reclaim: sending.reclaim,
      signal,
    });
    return { kind: "done", result };
  } catch (cause) {
    if (signal.aborted) return new Promise(() => {});
    const error = ensureFlotillaError(cause);
    if (error.code === "STALE_EPOCH") throw error;
    if (!transportCodes.has(error.code)) return { kind: "failed", error: error.toBody() };
    return afterTransportError(deps, spec, sending.deadline, error);
  }
}

/** The transport gave up, or the callee answered with a code of that name: the record tells which. */
async function afterTransportError(
  deps: EffectDeps,
  spec: EffectSpec,
  deadline: number,
  error: FlotillaError,
): Promise<EffectResult | "resend"> {
  const known = await settledByRecord(deps, spec);
  if (known === null) {
    if (error.code === "SHUTTING_DOWN" && deps.now() < deadline) return "resend";
    const off = await writeOff(deps, spec, error.message);
    return off.kind === "not_started" ? { kind: "not_started", error: error.toBody() } : off;
  }
  if (known.kind === "dead") return spec.replay === "never" ? { kind: "unknown" } : "resend";
  if (known.kind !== "running") return known;
  if (deps.now() < deadline) return "resend";
  cancelEffect(deps.bus, spec.worker, spec.key, "deadline", spec.epoch);
  return { kind: "in_flight", error: error.toBody() };
}

async function watchRecord(
  deps: EffectDeps,
  spec: EffectSpec,
  deadline: number,
  signal: AbortSignal,
): Promise<EffectResult | "resend"> {
  let misses = 0;
  for (;;) {
    await pauseUnlessEnded(watchMs, signal);
    if (signal.aborted || deps.now() >= deadline) return new Promise(() => {});
    const known = await settledByRecord(deps, spec);
    if (signal.aborted) return new Promise(() => {});
    if (known === null) {
      // The request may have died with the instance that had received it; asking again attaches if it runs after all.
      misses += 1;
      if (misses >= 2 && deps.bus.registry.resolve(spec.functionId)?.live === true) return "resend";
      continue;
    }
    misses = 0;
    if (known.kind === "dead") return spec.replay === "never" ? { kind: "unknown" } : "resend";
    if (known.kind !== "running") return known;
  }
}

/** Most calls end long before: no timer of theirs is left to run. */
function pauseUnlessEnded(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
