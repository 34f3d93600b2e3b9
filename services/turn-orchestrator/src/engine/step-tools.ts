// function_execute and function_awaiting_approval: runs a batch in parallel, takes decisions, closes it in order (I5).
import { type ApprovalBody, argumentsOf, type CallRecord, denialByUser } from "@flotilla/contracts";
import { closeBatch, isPlainObject, settleCall } from "../domain/batch.ts";
import { clip } from "../domain/clip.ts";
import { callsWith, type Draft, isChanged, moveTo, turnOf } from "../domain/draft.ts";
import {
  answered,
  denied,
  expired,
  failed,
  outcomeUnknown,
  type Settled,
  skippedBySteering,
  timedOut,
} from "../domain/results.ts";
import type { Asked } from "../domain/take-inputs.ts";
import { abortTurn, revokeApprovals } from "./abort.ts";
import type { EffectResult } from "./effect-call.ts";
import { parkOrRun, refusalOf, release, startSequential } from "./plan-batch.ts";
import { toolSpec } from "./specs.ts";
import { steer } from "./steering.ts";
import type { Decision, StepContext } from "./types.ts";

const idleWaitMs = 5_000;
/** Results that settle within this window go into one commit. */
export const settleWindowMs = 20;

export async function stepTools(context: StepContext, draft: Draft, asked: Asked): Promise<Decision> {
  if (asked.abort !== null) return abortTurn(context, draft, asked.abort.reason);
  const expiring = await expireApprovals(context, draft, asked);
  for (const decision of asked.decisions) await applyDecision(context, draft, decision);
  if (asked.isSteered || asked.isInterrupted) await skipUnstarted(context, draft);
  const hasSettled = settleFinished(context, draft);
  startSequential(context, draft);
  const open = callsWith(draft, "running", "ready", "awaiting");
  if (open.length === 0) {
    const { resultIds, isTerminated } = closeBatch(draft, context.view);
    return steer(context, draft, { resultIds, hasResults: resultIds.length > 0, isTerminated });
  }
  const isActing = hasSettled || draft.events.length > 0 || draft.ledger.length > 0;
  if (isActing) {
    if (callsWith(draft, "running").length > 0) moveTo(draft, "function_execute");
    return parkOrRun(context, draft);
  }
  if (callsWith(draft, "running").length > 0) return { kind: "wait", ms: idleWaitMs };
  return expiring ? { kind: "wait", ms: 50 } : parkAgain(context, draft);
}

/** Woken without a reason to act: wait on humans again. */
function parkAgain(context: StepContext, draft: Draft): Promise<Decision> | Decision {
  if (isChanged(draft, context.view) || context.view.tail?.kind !== "idle") return parkOrRun(context, draft);
  return { kind: "idle" };
}

/** Starts what is committed as running, and settles what has ended. */
function settleFinished(context: StepContext, draft: Draft): boolean {
  const committed = new Set(
    context.view.state?.calls.filter((call) => call.status === "running").map((call) => call.id),
  );
  let hasSettled = false;
  for (const call of callsWith(draft, "running")) {
    if (!committed.has(call.id) || call.key === undefined) continue;
    if (!context.effects.has(call.key))
      context.effects.ensure(toolSpec(context, draft, call), context.isResumed(call.key));
    const result = context.effects.result(call.key);
    if (result === null) continue;
    settleCall(draft, call, settledOf(call, result));
    hasSettled = true;
  }
  return hasSettled;
}

export function settledOf(call: CallRecord, result: EffectResult): Settled {
  switch (result.kind) {
    case "done":
      return answered(result.result);
    case "failed":
      return failed(call.function_id, result.error);
    case "unknown":
      return outcomeUnknown(call.function_id);
    case "not_started":
      return result.error.code === "TIMEOUT"
        ? timedOut(call.function_id, call.timeout_ms ?? 0, false)
        : failed(call.function_id, result.error);
    case "in_flight":
      return timedOut(call.function_id, call.timeout_ms ?? 0, true);
    default:
      return result satisfies never;
  }
}

async function applyDecision(context: StepContext, draft: Draft, decision: ApprovalBody): Promise<void> {
  const call = turnOf(draft).calls.find((candidate) => candidate.id === decision.function_call_id);
  if (call?.status !== "awaiting") return;
  const args = argumentsOf(context.view, call.id);
  const reason = decision.reason === null ? {} : { reason: clip(decision.reason) };
  draft.events.push({
    type: "approval_decided",
    function_call_id: call.id,
    function_id: call.function_id,
    decision: decision.decision,
    ...reason,
  });
  draft.timers = draft.timers.filter((timer) => timer.name !== `approval-${call.id}`);
  if (decision.decision === "allow") return releaseApproved(context, draft, call, args);
  if (decision.decision === "deny")
    return settleCall(draft, call, denied(denialByUser(call.function_id, decision.reason, args)));
  if (decision.decision === "expired")
    return settleCall(draft, call, expired(call.function_id, turnOf(draft).request.approval_ttl_ms));
  settleCall(draft, call, skippedBySteering(call.function_id));
}

/** Policy is asked again at release: a rule that changed meanwhile can deny the call, never widen it. */
async function releaseApproved(context: StepContext, draft: Draft, call: CallRecord, args: unknown): Promise<void> {
  const turn = turnOf(draft);
  call.approved = true;
  delete call.approval;
  call.status = "ready";
  const plain = isPlainObject(args) ? args : {};
  const verdict = await context.deps.ports.checkPolicy(call.function_id, plain, {
    sessionId: turn.session_id,
    turnId: turn.turn_id,
  });
  const refusal = refusalOf(call.function_id, plain, verdict);
  if (refusal === null) release(context, draft, call);
  else settleCall(draft, call, denied(refusal));
}

/** I9: the TTL is the only clock of an approval. The decision is stored as an input, so that a human's may still be first. */
async function expireApprovals(context: StepContext, draft: Draft, asked: Asked): Promise<boolean> {
  const turn = turnOf(draft);
  const fired = new Set(asked.fired.map((timer) => timer.name));
  const due = callsWith(draft, "awaiting").filter(
    (call) => fired.has(`approval-${call.id}`) || (call.approval?.expires_at ?? Number.POSITIVE_INFINITY) <= draft.now,
  );
  for (const call of due) {
    await context.deps.ports.decideApproval(turn.session_id, {
      function_call_id: call.id,
      args_digest: call.args_digest,
      decision: "expired",
      reason: null,
      decided_by: "turn-orchestrator",
    });
  }
  return due.length > 0;
}

/** Steering skips the calls of the batch that have not started; what runs goes on. */
async function skipUnstarted(context: StepContext, draft: Draft): Promise<void> {
  const decided = await revokeApprovals(context, draft, "the user steered");
  for (const call of callsWith(draft, "ready", "awaiting")) {
    if (decided.has(call.id)) continue;
    if (call.status === "awaiting") {
      draft.events.push({
        type: "approval_decided",
        function_call_id: call.id,
        function_id: call.function_id,
        decision: "aborted",
        reason: "the user steered",
      });
    }
    settleCall(draft, call, skippedBySteering(call.function_id));
  }
}
