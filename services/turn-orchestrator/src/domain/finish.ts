// The ends of a step and of a turn: turn_end after each assistant turn, agent_end once per turn (I3). Pure.
import type { AssistantMessage, EndReason, TurnError } from "@flotilla/contracts";
import { clip } from "./clip.ts";
import { addEntry, type Draft, moveTo, turnOf } from "./draft.ts";

export function endStep(draft: Draft, resultIds: string[]): void {
  const turn = turnOf(draft);
  draft.events.push({ type: "turn_end", entry_id: turn.assistant_entry_id, result_entry_ids: resultIds });
}

/** `agent_end` and the terminal state in the same commit. */
export function finishTurn(draft: Draft, reason: EndReason, error: TurnError | null = null): void {
  const turn = turnOf(draft);
  draft.timers = [];
  // What was meant to steer this turn must not skip calls of the next: it waits there as a follow-up.
  draft.pending = draft.pending.map((item) => (item.kind === "steering" ? { ...item, kind: "followup" } : item));
  draft.isSettled = true;
  draft.events.push({ type: "agent_end", turn_id: turn.turn_id, reason, messages: [] });
  moveTo(draft, reason === "failed" ? "failed" : "stopped", (ended) => {
    ended.model_call = null;
    ended.calls = [];
    ended.error = error === null ? null : { ...error, message: clip(error.message) };
  });
}

/** An assistant message that no model wrote: a notice that belongs into the transcript. */
export function addNotice(draft: Draft, id: string, text: string, fields: Partial<AssistantMessage> = {}): void {
  const turn = turnOf(draft);
  const message: AssistantMessage = {
    role: "assistant",
    content: [{ type: "text", text }],
    stop_reason: "end",
    error_message: null,
    error_kind: null,
    usage: null,
    model: turn.model_call?.model ?? turn.request.model,
    provider: turn.model_call?.provider ?? turn.request.provider,
    timestamp: draft.now,
    ...fields,
  };
  addEntry(draft, id, message);
  draft.events.push({ type: "message_complete", message_id: id, entry_id: id, body_streamed: false });
  turn.assistant_entry_id = id;
}
