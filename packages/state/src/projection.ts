// What one commit says about the projection of its session. Pure.
import {
  type AgentMessage,
  type Commit,
  type PendingApproval,
  type SessionEntry,
  type StoredCommit,
  stateViewOf,
  textOf,
} from "@flotilla/contracts";
import type { EntryRow, ProjectionWrite } from "./types.ts";

const summaryLength = 80;
const entryTextLength = 2_000;

export function projectionOf(stored: StoredCommit): ProjectionWrite {
  const { commit, seq } = stored;
  const awaiting = commit.state === null ? [] : stateViewOf(commit.state).awaiting_approval;
  const newest = commit.entries.at(-1);
  return {
    seq,
    sessionId: commit.session_id,
    workspace: commit.workspace,
    at: commit.at,
    row: rowOf(stored),
    awaiting: awaiting.map((call) => call.function_call_id),
    requested: awaiting.flatMap((call): PendingApproval[] => {
      const found = argumentsIn(commit, call.function_call_id);
      return found === null ? [] : [{ session_id: commit.session_id, ...call, args: found.args }];
    }),
    summary: newest === undefined ? undefined : summaryOf(newest.message),
    entries: commit.entries.map(entryRowOf),
  };
}

function rowOf({ commit, kind }: StoredCommit): ProjectionWrite["row"] {
  const { state } = commit;
  return {
    session_id: commit.session_id,
    state: state?.state ?? (kind === "idle" ? "stopped" : "provisioning"),
    turn_id: state?.turn_id ?? commit.turn_id,
    turn_count: state?.turn_count ?? 0,
    updated_at: state?.updated_at_ms ?? commit.at,
    workspace: commit.workspace,
    entry_count: state?.entry_count ?? 0,
    cost_usd: (state?.usage.cost_microusd ?? 0) / 1e6,
    ...(state?.error == null ? {} : { error: { code: state.error.code, message: state.error.message } }),
  };
}

/** The arguments of a call, when this commit carries them: in its request event, else in its assistant entry. */
function argumentsIn(commit: Commit, callId: string): { args: unknown } | null {
  for (const event of commit.events) {
    if (event.type === "approval_requested" && event.function_call_id === callId) return { args: event.args };
  }
  for (const { message } of commit.entries) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) {
      if (block.type === "function_call" && block.id === callId) return { args: block.arguments };
    }
  }
  return null;
}

/** First text block, 80 characters; null for results and custom messages, as in the reference. */
export function summaryOf(message: AgentMessage): string | null {
  if (message.role === "function_result" || message.role === "custom") return null;
  const block = message.content.find((item) => item.type === "text");
  return block === undefined ? null : clip(block.text, summaryLength);
}

function entryRowOf(entry: SessionEntry): EntryRow {
  return {
    id: entry.id,
    parent_id: entry.parent_id,
    role: entry.message.role,
    timestamp: entry.timestamp,
    text: clip(textOf(entry.message), entryTextLength),
  };
}

/** At most `length` code points, so that no surrogate pair is cut. */
function clip(text: string, length: number): string {
  return [...text.slice(0, length * 2)].slice(0, length).join("");
}
