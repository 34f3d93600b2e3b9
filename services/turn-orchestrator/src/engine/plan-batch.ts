// A model answer with tool calls: verdicts of all its calls first, then one commit with intents, approvals and refusals.
import {
  type AssistantMessage,
  argumentsDigest,
  type CallRecord,
  type DenialEnvelope,
  denialByPolicy,
  gateUnavailable,
} from "@flotilla/contracts";
import { intendCall, isPlainObject, nextSequential, type PlannedCall, planCalls, settleCall } from "../domain/batch.ts";
import { addEntry, callsWith, type Draft, moveTo, turnOf } from "../domain/draft.ts";
import {
  argumentsTooLarge,
  denied,
  functionNotFound,
  invalidArguments,
  missingFunction,
  type Settled,
  skippedBySteering,
} from "../domain/results.ts";
import type { Verdict } from "./ports.ts";
import type { Decision, StepContext } from "./types.ts";

/** Of one call (commit-design, Sizes). */
const argumentLimitBytes = 1024 * 1024;

interface Answer {
  readonly message: AssistantMessage;
  readonly messageId: string;
  readonly streamed: boolean;
}

type Planned =
  | { readonly kind: "settled"; readonly settled: Settled }
  | { readonly kind: "verdict"; readonly verdict: Verdict };

export async function planBatch(context: StepContext, draft: Draft, answer: Answer): Promise<Decision> {
  const turn = turnOf(draft);
  const { message, calls } = planCalls(answer.message, turn.turn_id, turn.turn_count);
  addEntry(draft, answer.messageId, message);
  turn.assistant_entry_id = answer.messageId;
  draft.events.push({
    type: "message_complete",
    message_id: answer.messageId,
    entry_id: answer.messageId,
    body_streamed: answer.streamed,
  });
  const planned = await Promise.all(calls.map((call) => planOne(context, draft, call)));
  moveTo(draft, "function_execute");
  turn.calls = calls.map(recordOf);
  for (const [position, call] of calls.entries()) {
    const record = turn.calls[position];
    const plan = planned[position];
    if (record !== undefined && plan !== undefined) applyPlan(context, draft, call, record, plan);
  }
  startSequential(context, draft);
  return parkOrRun(context, draft);
}

/** A function that nobody offers is refused at once; policy and humans are not asked. */
async function planOne(context: StepContext, draft: Draft, call: PlannedCall): Promise<Planned> {
  // Steering that came while the model spoke: no call of this batch has started, so none does.
  if (draft.pending.some((item) => item.kind === "steering"))
    return { kind: "settled", settled: skippedBySteering(call.functionId) };
  if (call.isMissing) return { kind: "settled", settled: missingFunction() };
  if (context.deps.bus.registry.resolve(call.functionId) === null)
    return { kind: "settled", settled: functionNotFound(call.functionId) };
  if (!isPlainObject(call.args)) return { kind: "settled", settled: invalidArguments(call.functionId) };
  const bytes = Buffer.byteLength(JSON.stringify(call.args));
  if (bytes > argumentLimitBytes)
    return { kind: "settled", settled: argumentsTooLarge(call.functionId, bytes, argumentLimitBytes) };
  const turn = turnOf(draft);
  const verdict = await context.deps.ports.checkPolicy(call.functionId, call.args, {
    sessionId: turn.session_id,
    turnId: turn.turn_id,
  });
  const refusal = refusalOf(call.functionId, call.args, verdict);
  return refusal === null ? { kind: "verdict", verdict } : { kind: "settled", settled: denied(refusal) };
}

/** I8: only `allow` and `needs_approval` go on. */
export function refusalOf(functionId: string, args: Record<string, unknown>, verdict: Verdict): DenialEnvelope | null {
  if (verdict.decision === "deny") return denialByPolicy(functionId, verdict, args);
  if (verdict.decision === "unavailable") return gateUnavailable(functionId, verdict.reason);
  return null;
}

function recordOf(call: PlannedCall): CallRecord {
  return {
    id: call.id,
    index: call.index,
    function_id: call.functionId,
    args_digest: argumentsDigest(call.functionId, call.args ?? null),
    status: "ready",
    attempt: 1,
  };
}

function applyPlan(context: StepContext, draft: Draft, call: PlannedCall, record: CallRecord, plan: Planned): void {
  draft.events.push({
    type: "function_execution_start",
    function_call_id: call.id,
    function_id: call.functionId,
    args: call.args,
  });
  if (plan.kind === "settled") {
    settleCall(draft, record, plan.settled);
    return;
  }
  if (plan.verdict.decision === "needs_approval") requestApproval(draft, record, call.args, plan.verdict.reason);
  else release(context, draft, record);
}

function requestApproval(draft: Draft, record: CallRecord, args: unknown, reason: string | undefined): void {
  const turn = turnOf(draft);
  const approval = {
    created_at: draft.now,
    expires_at: draft.now + turn.request.approval_ttl_ms,
    ...(reason === undefined ? {} : { reason }),
  };
  record.status = "awaiting";
  record.approval = approval;
  draft.events.push({
    type: "approval_requested",
    function_call_id: record.id,
    function_id: record.function_id,
    args,
    args_digest: record.args_digest,
    ...approval,
  });
}

/** An allowed call: its intent now, unless it is sequential and has to wait for its turn. */
export function release(context: StepContext, draft: Draft, record: CallRecord): void {
  const route = context.deps.bus.registry.resolve(record.function_id);
  if (route === null) {
    settleCall(draft, record, functionNotFound(record.function_id));
    return;
  }
  record.execution = route.fn.execution;
  if (route.fn.execution === "sequential") record.status = "ready";
  else intendCall(draft, record, route);
}

export function startSequential(context: StepContext, draft: Draft): void {
  for (let next = nextSequential(turnOf(draft).calls); next !== null; next = nextSequential(turnOf(draft).calls)) {
    const route = context.deps.bus.registry.resolve(next.function_id);
    if (route === null) settleCall(draft, next, functionNotFound(next.function_id));
    else intendCall(draft, next, route);
  }
}

/** Parks when nothing runs and only humans are waited for; every timer is armed before the idle commit (I9). */
export async function parkOrRun(context: StepContext, draft: Draft): Promise<Decision> {
  const turn = turnOf(draft);
  const awaiting = callsWith(draft, "awaiting");
  if (callsWith(draft, "running", "ready").length > 0 || awaiting.length === 0) return { kind: "commit" };
  moveTo(draft, "function_awaiting_approval");
  for (const call of awaiting) {
    const timer = { name: `approval-${call.id}`, due_at: call.approval?.expires_at ?? draft.now };
    if (draft.timers.some((armed) => armed.name === timer.name)) continue;
    await context.deps.ports.armTimer(turn.session_id, timer);
    draft.timers.push(timer);
  }
  return { kind: "idle" };
}
