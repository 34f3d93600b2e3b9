// From a commit's events in stored form to the events of the wire: entries and ledger records filled in. Pure.
import type { AgentMessage, Commit, CommitEvent, FunctionResult, WireEvent } from "@flotilla/contracts";
import { messageAtEdge } from "./money.ts";

/** Finds a message by entry id: of this commit or, for `turn_end`, of an earlier one of the same step. */
export type EntryLookup = (entryId: string) => AgentMessage | undefined;

export function expandEvent(event: CommitEvent, commit: Commit, entryOf: EntryLookup): WireEvent {
  switch (event.type) {
    case "message_complete": {
      const message = entryOf(event.entry_id);
      if (message === undefined) throw new Error(`commit ${commit.commit_id} completes a message it does not hold`);
      return { ...event, message: messageAtEdge(message) };
    }
    case "function_execution_end":
      return { ...event, result: resultOf(commit, event.function_call_id) };
    case "turn_end":
      return {
        type: "turn_end",
        message: event.entry_id === null ? null : (edge(entryOf(event.entry_id)) ?? null),
        function_results: event.result_entry_ids.map(entryOf).filter((message) => message !== undefined),
      };
    default:
      return event;
  }
}

/** Ids of entries that the commit's events refer to and that it does not hold itself. */
export function foreignEntries(commit: Commit): string[] {
  const own = new Set(commit.entries.map((entry) => entry.id));
  const named = commit.events.flatMap((event) =>
    event.type === "turn_end" ? [...(event.entry_id === null ? [] : [event.entry_id]), ...event.result_entry_ids] : [],
  );
  return named.filter((id) => !own.has(id));
}

function edge(message: AgentMessage | undefined): AgentMessage | undefined {
  return message === undefined ? undefined : messageAtEdge(message);
}

function resultOf(commit: Commit, callId: string): FunctionResult {
  for (const record of commit.ledger) {
    if (record.kind === "outcome" && record.call_id === callId && record.result !== undefined) return record.result;
  }
  for (const { message } of commit.entries) {
    if (message.role === "function_result" && message.function_call_id === callId) {
      return { content: message.content, details: message.details };
    }
  }
  return { content: [], details: null };
}
