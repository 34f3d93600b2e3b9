// A new turn's record, from a start input or from inbox messages that reached an idle session. Pure.
import {
  type AgentMessage,
  assistantMessageId,
  effectKey,
  inboxEntryId,
  type OpenModelCall,
  type PendingInput,
  type StartBody,
  stateViewOf,
  type TurnRecord,
  type TurnRequest,
  turnIdOf,
  userEntryId,
} from "@flotilla/contracts";
import { addEntry, type Draft, moveTo, turnOf } from "./draft.ts";

export interface TurnSeed {
  readonly session_id: string;
  readonly workspace: string;
  readonly turn_id: string;
  readonly message_id: string;
  readonly request: TurnRequest;
  readonly traceparent: string | null;
  readonly messages: readonly { readonly entryId: string; readonly message: AgentMessage }[];
}

/** `inputSeq`: given when the plain entry ids of the message id are taken. */
export function seedFromStart(body: StartBody, inputSeq: number | null = null): TurnSeed {
  const { session_id, workspace, turn_id, message_id, request, traceparent } = body;
  const idOf = (index: number) =>
    inputSeq === null ? userEntryId(message_id, index) : inboxEntryId(message_id, inputSeq, index);
  const messages = body.messages.map((message, index) => ({ entryId: idOf(index), message }));
  return { session_id, workspace, turn_id, message_id, request, traceparent, messages };
}

/** A message for a turn that ended before it was taken becomes a turn of its own, asked as the last one was (I6). */
export function seedFromInbox(last: TurnRecord, first: PendingInput, messages: TurnSeed["messages"]): TurnSeed {
  return {
    session_id: last.session_id,
    workspace: last.workspace,
    // Not the turn of a start that uses the same message id: its calls would be taken for this one's.
    turn_id: turnIdOf(last.session_id, `${first.id}#${first.seq}`),
    message_id: first.id,
    request: last.request,
    // Nobody's request started it: a trace of its own.
    traceparent: null,
    messages,
  };
}

export function openTurn(draft: Draft, seed: TurnSeed, seqNo: number): void {
  const last = draft.state;
  const turn: TurnRecord = {
    session_id: seed.session_id,
    workspace: last?.workspace ?? seed.workspace,
    state: "provisioning",
    turn_id: seed.turn_id,
    message_id: seed.message_id,
    turns: (last?.turns ?? 0) + 1,
    turn_count: 0,
    request: seed.request,
    model_call: null,
    calls: [],
    assistant_entry_id: null,
    leaf: last?.leaf ?? null,
    entry_count: last?.entry_count ?? 0,
    usage: last?.usage ?? {},
    turn_usage: {},
    traceparent: seed.traceparent,
    ...(last === null || last.turns === 0
      ? {}
      : { previous_turn: { turn_id: last.turn_id, traceparent: last.traceparent } }),
    started_at_ms: draft.now,
    updated_at_ms: draft.now,
    turn_first_seq_no: seqNo,
    error: null,
  };
  draft.state = turn;
  draft.events.push({ type: "turn_state_changed", event_type: "state:created", new_value: stateViewOf(turn) });
  for (const { entryId, message } of seed.messages) addEntry(draft, entryId, message);
}

/** The record of a session that only had messages appended to it. */
export function sessionWithoutTurn(sessionId: string, inputId: string, now: number): TurnRecord {
  return {
    session_id: sessionId,
    workspace: "default",
    state: "stopped",
    turn_id: turnIdOf(sessionId, inputId),
    message_id: inputId,
    turns: 0,
    turn_count: 0,
    request: {
      provider: "",
      model: "",
      fallback: [],
      mode: null,
      system_prompt: "",
      functions: [],
      max_turns: null,
      approval_ttl_ms: 86_400_000,
      thinking_level: null,
    },
    model_call: null,
    calls: [],
    assistant_entry_id: null,
    leaf: null,
    entry_count: 0,
    usage: {},
    turn_usage: {},
    traceparent: null,
    started_at_ms: now,
    updated_at_ms: now,
    turn_first_seq_no: 0,
    error: null,
  };
}

/** Records the intent of the next model call of the turn (I4); `worker` is the one that routing chose for its provider. */
export function nextModelCall(draft: Draft, workerOf: (provider: string) => string): void {
  const turn = turnOf(draft);
  turn.turn_count += 1;
  turn.calls = [];
  turn.assistant_entry_id = null;
  intendModelCall(draft, workerOf, { attempt: 1, retries: 0, chainIndex: 0 });
  moveTo(draft, "assistant_streaming");
}

export function chainOf(request: TurnRequest): { provider: string; model: string }[] {
  return [{ provider: request.provider, model: request.model }, ...request.fallback];
}

export function intendModelCall(
  draft: Draft,
  workerOf: (provider: string) => string,
  next: { attempt: number; retries: number; chainIndex: number },
): void {
  const turn = turnOf(draft);
  const chain = chainOf(turn.request);
  const target = chain[Math.min(next.chainIndex, chain.length - 1)] ?? {
    provider: turn.request.provider,
    model: turn.request.model,
  };
  const worker = workerOf(target.provider);
  const key = effectKey({
    worker,
    sessionId: turn.session_id,
    turnId: turn.turn_id,
    step: turn.turn_count,
    kind: "m",
    index: 0,
    attempt: next.attempt,
  });
  const call: OpenModelCall = {
    key,
    worker,
    function_id: `provider::${target.provider}::stream`,
    message_id: assistantMessageId(turn.turn_id, turn.turn_count, next.attempt),
    attempt: next.attempt,
    retries: next.retries,
    chain_index: next.chainIndex,
    provider: target.provider,
    model: target.model,
    started_at_ms: draft.now,
  };
  turn.model_call = call;
  draft.ledger.push({
    kind: "intent",
    key,
    call_id: null,
    worker,
    function_id: call.function_id,
    replay: "never",
    attempt: next.attempt,
    at: draft.now,
  });
}
