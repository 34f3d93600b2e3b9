// A batch of tool calls: planned from an assistant message, settled one by one, closed in the model's order (I5). Pure.
import {
  type AssistantMessage,
  type CallRecord,
  callIdOf,
  effectKey,
  type FunctionManifest,
  type FunctionResultMessage,
  type LedgerOutcome,
  resultEntryId,
  type SessionView,
} from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { addEntry, type Draft, turnOf } from "./draft.ts";
import type { Settled } from "./results.ts";

/** The name of the one generic tool through which a model reaches functions it was not given natively. */
export const agentTriggerName = "agent_trigger";

export interface PlannedCall {
  readonly id: string;
  readonly index: number;
  readonly functionId: string;
  readonly args: unknown;
  /** `agent_trigger` without a function. */
  readonly isMissing: boolean;
}

/** Gives every call our id and unwraps `agent_trigger`; the message is the one that goes into the transcript. */
export function planCalls(
  message: AssistantMessage,
  turnId: string,
  step: number,
): { message: AssistantMessage; calls: PlannedCall[] } {
  const calls: PlannedCall[] = [];
  const content = message.content.map((block) => {
    if (block.type !== "function_call") return block;
    const index = calls.length;
    const id = callIdOf(turnId, step, index);
    const target = unwrap(block.function_id, block.arguments);
    calls.push({ id, index, ...target });
    return {
      type: "function_call" as const,
      id,
      function_id: target.functionId,
      arguments: target.args,
      provider_call_id: block.provider_call_id ?? block.id,
    };
  });
  return { message: { ...message, content }, calls };
}

function unwrap(functionId: string, args: unknown): { functionId: string; args: unknown; isMissing: boolean } {
  if (functionId !== agentTriggerName) return { functionId, args, isMissing: false };
  if (
    typeof args === "object" &&
    args !== null &&
    "function" in args &&
    typeof args.function === "string" &&
    args.function !== ""
  ) {
    return { functionId: args.function, args: "payload" in args ? (args.payload ?? {}) : {}, isMissing: false };
  }
  return { functionId, args, isMissing: true };
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Records the intent of a call (I4) and marks it running. */
export function intendCall(draft: Draft, call: CallRecord, route: { worker: string; fn: FunctionManifest }): void {
  const turn = turnOf(draft);
  const key = effectKey({
    worker: route.worker,
    sessionId: turn.session_id,
    turnId: turn.turn_id,
    step: turn.turn_count,
    kind: "t",
    index: call.index,
    attempt: call.attempt,
  });
  call.status = "running";
  call.key = key;
  call.worker = route.worker;
  call.replay = route.fn.replay;
  call.timeout_ms = route.fn.timeout_ms;
  call.started_at_ms = draft.now;
  draft.ledger.push({
    kind: "intent",
    key,
    call_id: call.id,
    worker: route.worker,
    function_id: call.function_id,
    replay: route.fn.replay,
    attempt: call.attempt,
    at: draft.now,
  });
}

export function settleCall(draft: Draft, call: CallRecord, settled: Settled): void {
  if (call.status === "settled") throw new FlotillaError("TURN_INVARIANT", `call ${call.id} is settled twice`);
  const duration = call.started_at_ms === undefined ? 0 : Math.max(0, draft.now - call.started_at_ms);
  call.status = "settled";
  delete call.approval;
  draft.ledger.push({
    kind: "outcome",
    key: call.key ?? null,
    call_id: call.id,
    function_id: call.function_id,
    status: settled.status,
    result: settled.result,
    is_error: settled.isError,
    duration_ms: duration,
    at: draft.now,
  });
  draft.events.push({
    type: "function_execution_end",
    function_call_id: call.id,
    function_id: call.function_id,
    is_error: settled.isError,
    duration_ms: duration,
  });
}

/** The ordered results of a batch whose calls are all settled, as entries; answers their ids and whether all terminate. */
export function closeBatch(draft: Draft, view: SessionView): { resultIds: string[]; isTerminated: boolean } {
  const turn = turnOf(draft);
  const outcomes = new Map<string, LedgerOutcome>(view.outcomes);
  for (const record of draft.ledger)
    if (record.kind === "outcome" && record.call_id !== null) outcomes.set(record.call_id, record);
  const resultIds: string[] = [];
  let terminating = 0;
  for (const call of turn.calls) {
    const outcome = outcomes.get(call.id);
    if (outcome?.result === undefined) throw new FlotillaError("TURN_INVARIANT", `call ${call.id} has no outcome`);
    const message: FunctionResultMessage = {
      role: "function_result",
      function_call_id: call.id,
      function_id: call.function_id,
      content: outcome.result.content,
      details: outcome.result.details,
      is_error: outcome.is_error,
      timestamp: draft.now,
    };
    if (outcome.result.terminate === true) terminating += 1;
    const id = resultEntryId(call.id);
    resultIds.push(id);
    addEntry(draft, id, message);
  }
  const isTerminated = turn.calls.length > 0 && terminating === turn.calls.length;
  draft.isSettled = true;
  return { resultIds, isTerminated };
}

/** Sequential functions of a batch run one after the other, in the model's order; the others run beside them. */
export function nextSequential(calls: readonly CallRecord[]): CallRecord | null {
  if (calls.some((call) => call.execution === "sequential" && call.status === "running")) return null;
  return calls.find((call) => call.execution === "sequential" && call.status === "ready") ?? null;
}
