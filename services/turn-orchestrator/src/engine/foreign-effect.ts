// Calls to workers that keep no outcome records themselves: the orchestrator keeps the record on their behalf (I4).
import type { OutcomeRecord } from "@flotilla/bus";
import { ensureFlotillaError } from "@flotilla/errors";
import { type EffectDeps, type EffectResult, type EffectSpec, runEffect } from "./effect-call.ts";

const goneAfterMs = 3_000;

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
  const own = { worker: deps.bus.worker, instance: deps.bus.instance, epoch: spec.epoch };
  const running: OutcomeRecord = { status: "running", ...own, at: deps.now() };
  let revision = await deps.bus.outcomes.write(spec.key, running, 0);
  if (revision === null) {
    const found = await deps.bus.outcomes.read(spec.key, { fresh: true });
    if (found?.record.status === "done") return { kind: "done", result: found.record.result };
    if (found?.record.status === "failed") return { kind: "failed", error: found.record.error };
    if (found?.record.status === "cancelled")
      return { kind: "not_started", error: { code: "CANCELLED", message: "cancelled before it started" } };
    if (spec.replay === "never" || found === null) return { kind: "unknown" };
    revision = await deps.bus.outcomes.write(spec.key, running, found.revision);
    if (revision === null) return { kind: "unknown" };
  }
  const startedAt = deps.now();
  const outcome = await Promise.race([sendForeign(deps, spec, signal), workerGone(deps, spec, signal)]);
  const ended = { ...own, at: deps.now(), started_at: startedAt };
  if (outcome.kind === "done")
    await deps.bus.outcomes.write(spec.key, { status: "done", ...ended, result: outcome.result }, revision);
  if (outcome.kind === "failed")
    await deps.bus.outcomes.write(spec.key, { status: "failed", ...ended, error: outcome.error }, revision);
  return outcome;
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
