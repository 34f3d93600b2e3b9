// Ending a turn early: abort, interrupt, crash loop. Everything open is cancelled, written off with proof, and given a result (I5, I14).
import {
  type AssistantMessage,
  assistantMessageId,
  type CallRecord,
  type EndReason,
  type OpenModelCall,
  resultEntryId,
  type TurnError,
} from "@flotilla/contracts";
import { closeBatch, settleCall } from "../domain/batch.ts";
import { clip } from "../domain/clip.ts";
import { addEntry, callsWith, type Draft, moveTo, turnOf } from "../domain/draft.ts";
import { addNotice, endStep, finishTurn } from "../domain/finish.ts";
import { abortedBeforeStart, abortedInFlight } from "../domain/results.ts";
import { charge, estimatedUsage, pricedUsage, withUsage } from "../domain/usage.ts";
import { type EffectResult, patiently } from "./effect-call.ts";
import { modelSpec, toolSpec } from "./specs.ts";
import { settledOf } from "./step-tools.ts";
import type { Decision, StepContext } from "./types.ts";

const graceMs = 1_200;

export async function abortTurn(context: StepContext, draft: Draft, reason: string | null): Promise<Decision> {
  await endOpenWork(context, draft, clip(reason ?? "session_aborted"));
  return endEarly(draft, "aborted", null);
}

/** I4: a turn that keeps killing its owners stops here instead of being paid for again. */
export async function failTurn(context: StepContext, draft: Draft, error: TurnError): Promise<Decision> {
  await endOpenWork(context, draft, error.code);
  const turn = turnOf(draft);
  const resultIds = turn.calls.map((call) => resultEntryId(call.id));
  const text = `The turn failed: ${error.message}`;
  addNotice(draft, `${turn.turn_id}-failed`, text, {
    stop_reason: "error",
    error_kind: "permanent",
    error_message: error.message,
  });
  return endEarly(draft, "failed", error, resultIds);
}

/** The running model call is cut and its turn ends; the message that interrupted is answered by a turn of its own. */
export async function interruptModelCall(context: StepContext, draft: Draft): Promise<Decision> {
  await endOpenWork(context, draft, "interrupted");
  return endEarly(draft, "interrupted", null);
}

function endEarly(draft: Draft, reason: EndReason, error: TurnError | null, resultIds?: string[]): Decision {
  const ids = resultIds ?? turnOf(draft).calls.map((call) => resultEntryId(call.id));
  moveTo(draft, "steering_check");
  endStep(draft, ids);
  finishTurn(draft, reason, error);
  return { kind: "idle" };
}

async function endOpenWork(context: StepContext, draft: Draft, reason: string): Promise<void> {
  const turn = turnOf(draft);
  if (turn.model_call?.retry_at_ms !== undefined) cutParkedRetry(draft, turn.model_call);
  else if (turn.model_call !== null) await cutModelCall(context, draft, turn.model_call, reason);
  if (turn.calls.length > 0) await cutBatch(context, draft, reason);
}

/** No call is open: the attempt that failed is closed and paid for, the one that is waited for has said nothing. */
function cutParkedRetry(draft: Draft, call: OpenModelCall): void {
  const turn = turnOf(draft);
  const id = assistantMessageId(turn.turn_id, turn.turn_count, call.attempt + 1);
  addNotice(draft, id, "", { content: [], stop_reason: "aborted" });
  turn.model_call = null;
}

async function cutModelCall(context: StepContext, draft: Draft, call: OpenModelCall, reason: string): Promise<void> {
  const turn = turnOf(draft);
  const results = await context.effects.cancel([await modelSpec(context, draft, call)], reason, graceMs);
  const { message, streamed } = await partialOf(context, draft, call, results.get(call.key));
  const model = await context.deps.ports.model(call.provider, call.model);
  const chars = message.content.reduce(
    (sum, block) => sum + (block.type === "text" || block.type === "thinking" ? block.text.length : 0),
    0,
  );
  const usage = message.usage == null ? estimatedUsage(chars, model) : pricedUsage(message.usage, model);
  charge(turn, usage);
  turn.model_call = null;
  turn.assistant_entry_id = call.message_id;
  addEntry(draft, call.message_id, withUsage(message, usage));
  draft.events.push({
    type: "message_complete",
    message_id: call.message_id,
    entry_id: call.message_id,
    body_streamed: streamed,
  });
  draft.ledger.push({
    kind: "outcome",
    key: call.key,
    call_id: null,
    function_id: call.function_id,
    status: "cancelled",
    is_error: true,
    duration_ms: Math.max(0, draft.now - call.started_at_ms),
    usage,
    at: draft.now,
  });
}

/** What the provider answered when it was cancelled; without an answer, the text that it had stored. No calls: none ran. */
async function partialOf(
  context: StepContext,
  draft: Draft,
  call: OpenModelCall,
  result: EffectResult | undefined,
): Promise<{ message: AssistantMessage; streamed: boolean }> {
  const base: AssistantMessage = {
    role: "assistant",
    content: [],
    stop_reason: "aborted",
    error_message: null,
    error_kind: null,
    usage: null,
    model: call.model,
    provider: call.provider,
    timestamp: draft.now,
  };
  if (result?.kind === "done") {
    const reply = result.result as { message?: AssistantMessage; streamed?: boolean } | null;
    if (Array.isArray(reply?.message?.content)) {
      const content = reply.message.content.filter((block) => block.type !== "function_call");
      return {
        message: { ...reply.message, content, stop_reason: "aborted", error_message: null, error_kind: null },
        streamed: reply.streamed === true && content.length > 0,
      };
    }
  }
  const content = await storedText(context, call);
  return { message: { ...base, content }, streamed: content.length > 0 };
}

async function storedText(context: StepContext, call: OpenModelCall): Promise<AssistantMessage["content"]> {
  const { bus } = context.deps;
  const frames = await patiently(context.deps, () => bus.deltas.read(context.view.session_id, call.message_id));
  const blocks = new Map<number, { type: "text" | "thinking"; text: string }>();
  for (const frame of frames) {
    if (frame.kind === "function_call") continue;
    const block = blocks.get(frame.block) ?? { type: frame.kind, text: "" };
    if (frame.offset === block.text.length) block.text += frame.text;
    blocks.set(frame.block, block);
  }
  return [...blocks.entries()].sort(([a], [b]) => a - b).map(([, block]) => block);
}

async function cutBatch(context: StepContext, draft: Draft, reason: string): Promise<void> {
  await revokeApprovals(context, draft, reason);
  const committed = new Set(
    context.view.state?.calls.filter((call) => call.status === "running").map((call) => call.id),
  );
  const running = callsWith(draft, "running").filter((call) => committed.has(call.id));
  const specs = running.map((call) => toolSpec(context, draft, call));
  const results = await context.effects.cancel(specs, reason, graceMs);
  for (const call of callsWith(draft, "running", "ready", "awaiting")) {
    if (call.status === "awaiting") {
      draft.events.push({
        type: "approval_decided",
        function_call_id: call.id,
        function_id: call.function_id,
        decision: "aborted",
        reason,
      });
    }
    settleCall(draft, call, cutResult(call, call.key === undefined ? undefined : results.get(call.key)));
  }
  closeBatch(draft, context.view);
}

function cutResult(call: CallRecord, result: EffectResult | undefined) {
  if (result === undefined || result.kind === "not_started") return abortedBeforeStart(call.function_id);
  if (result.kind === "in_flight") return abortedInFlight(call.function_id);
  if (result.kind === "failed" && result.error.code === "CANCELLED") return abortedInFlight(call.function_id);
  return settledOf(call, result);
}

/**
 * Stores `aborted` for every open approval, so that a later decision is refused. The first stored decision wins: answers
 * the calls on which a human was first.
 */
export async function revokeApprovals(context: StepContext, draft: Draft, reason: string): Promise<Set<string>> {
  const turn = turnOf(draft);
  const decided = new Set<string>();
  for (const call of callsWith(draft, "awaiting")) {
    const winner = await context.deps.ports.decideApproval(turn.session_id, {
      function_call_id: call.id,
      args_digest: call.args_digest,
      decision: "aborted",
      reason,
      decided_by: "turn-orchestrator",
    });
    if (winner === "allow" || winner === "deny") decided.add(call.id);
  }
  return decided;
}
