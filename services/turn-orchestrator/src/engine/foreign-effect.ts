// Calls to workers that keep no outcome records themselves: the orchestrator keeps the record on their behalf (I4).
import { isBlobRef, type OutcomeRecord } from "@flotilla/bus";
import { ensureFlotillaError } from "@flotilla/errors";
import { doneBy, type EffectDeps, type EffectResult, type EffectSpec, patiently, runEffect } from "./effect-call.ts";

const goneAfterMs = 3_000;
const inlineLimitBytes = 32 * 1024;

/** Whether the worker says that it keeps outcome records. */
export function keepsOutcomes(deps: EffectDeps, worker: string): boolean {
  const entry = deps.bus.registry.workers().find((candidate) => candidate.manifest.worker === worker);
  return entry === undefined || entry.manifest.meta.outcomes === true;
}

/** Runs a call by the callee's own records when it keeps them, else by ours. */
export async function runAnyEffect(
  deps: EffectDeps,
  spec: EffectSpec,
  isResumed: boolean,
  signal: AbortSignal,
): Promise<EffectResult> {
  if (keepsOutcomes(deps, spec.worker)) return runEffect(deps, spec, isResumed, signal);
  return runForeign(deps, spec, signal);
}

/**
 * A record that exists already is a former owner's: its call may have run, so only a `safe` or `keyed` one is sent again.
 */
async function runForeign(deps: EffectDeps, spec: EffectSpec, signal: AbortSignal): Promise<EffectResult> {
  const { outcomes, worker, instance } = deps.bus;
  const own = { worker, instance, epoch: spec.epoch };
  const running: OutcomeRecord = { status: "running", ...own, at: deps.now() };
  const write = (record: OutcomeRecord, expected: number) =>
    patiently(deps, () => outcomes.write(spec.key, record, expected));
  let revision = await write(running, 0);
  if (revision === null) {
    const found = await patiently(deps, () => outcomes.read(spec.key, { fresh: true }));
    if (found === null) return { kind: "unknown" };
    const { record } = found;
    if (record.status === "done") return doneBy(deps.bus, record.result);
    if (record.status === "failed") return { kind: "failed", error: record.error };
    if (record.status === "cancelled")
      return { kind: "not_started", error: { code: "CANCELLED", message: "cancelled before it started" } };
    // The answer to our own write was lost.
    const isOurs = record.instance === instance && record.epoch === spec.epoch && record.at === running.at;
    if (!isOurs && spec.replay === "never") return { kind: "unknown" };
    revision = isOurs ? found.revision : await write(running, found.revision);
    if (revision === null) return { kind: "unknown" };
  }
  const startedAt = deps.now();
  const outcome = await Promise.race([sendForeign(deps, spec, signal), workerGone(deps, spec, signal)]);
  const ended = { ...own, at: deps.now(), started_at: startedAt };
  if (outcome.kind === "done") {
    const result = await stored(deps, outcome.result);
    await write({ status: "done", ...ended, result }, revision);
  }
  if (outcome.kind === "failed") await write({ status: "failed", ...ended, error: outcome.error }, revision);
  return outcome;
}

/** A large result, and one that only looks like a reference, are kept in the object store. */
async function stored(deps: EffectDeps, result: unknown): Promise<unknown> {
  const isLarge = Buffer.byteLength(JSON.stringify(result) ?? "") > inlineLimitBytes;
  return isLarge || isBlobRef(result) ? patiently(deps, () => deps.bus.blobs.putJson(result)) : result;
}

async function sendForeign(deps: EffectDeps, spec: EffectSpec, signal: AbortSignal): Promise<EffectResult> {
  try {
    const result = await deps.bus.callId(spec.functionId, spec.payload, {
      worker: spec.worker,
      timeoutMs: spec.timeoutMs,
      idempotencyKey: spec.key,
      epoch: spec.epoch,
      attempt: spec.attempt,
      caller: "agent",
      sessionId: spec.sessionId,
      turnId: spec.turnId,
      callId: spec.callId,
      workspace: spec.workspace,
      signal,
    });
    return { kind: "done", result };
  } catch (cause) {
    const error = ensureFlotillaError(cause);
    if (error.code === "WORKER_UNAVAILABLE") return { kind: "not_started", error: error.toBody() };
    if (error.code === "TIMEOUT" || error.code === "BUS_UNAVAILABLE" || error.code === "CANCELLED")
      return { kind: "in_flight", error: error.toBody() };
    return { kind: "failed", error: error.toBody() };
  }
}

/** Resolves when no instance of the worker has been live for a while. */
async function workerGone(deps: EffectDeps, spec: EffectSpec, signal: AbortSignal): Promise<EffectResult> {
  let goneSince: number | null = null;
  while (!signal.aborted) {
    await deps.bus.registry.changed(1_000, signal);
    const entry = deps.bus.registry.workers().find((candidate) => candidate.manifest.worker === spec.worker);
    const isLive = (entry?.instances.length ?? 0) > 0;
    if (isLive) goneSince = null;
    else goneSince ??= deps.now();
    if (goneSince !== null && deps.now() - goneSince > goneAfterMs) return { kind: "unknown" };
  }
  return new Promise(() => {});
}
