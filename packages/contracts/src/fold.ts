// Folding a session's commits, oldest first, into what a reader needs: state, transcript, open ledger. Pure.
import type { Commit, LedgerRecord, SessionEntry, StoredCommit, TurnRecord, TurnStateView } from "./commit.ts";
import type { MessageWithEntryId } from "./messages.ts";

export type LedgerOutcome = Extract<LedgerRecord, { kind: "outcome" }>;

export interface SessionView {
  readonly session_id: string;
  /** Newest commit; null before the first. */
  tail: StoredCommit | null;
  state: TurnRecord | null;
  entries: SessionEntry[];
  byId: Map<string, SessionEntry>;
  /** Outcomes of tool calls of the newest turn, by call id. */
  outcomes: Map<string, LedgerOutcome>;
}

export function emptyView(sessionId: string): SessionView {
  return { session_id: sessionId, tail: null, state: null, entries: [], byId: new Map(), outcomes: new Map() };
}

/** Applies one commit in place; a commit that is not newer than the tail is ignored. */
export function applyCommit(view: SessionView, stored: StoredCommit): SessionView {
  if (view.tail !== null && stored.seq <= view.tail.seq) return view;
  const { commit } = stored;
  if (view.state?.turn_id !== commit.state?.turn_id) view.outcomes.clear();
  view.tail = stored;
  view.state = commit.state;
  for (const entry of commit.entries) {
    if (view.byId.has(entry.id)) continue;
    view.entries.push(entry);
    view.byId.set(entry.id, entry);
  }
  for (const record of commit.ledger) {
    if (record.kind === "outcome" && record.call_id !== null) view.outcomes.set(record.call_id, record);
  }
  return view;
}

export function foldCommits(sessionId: string, commits: Iterable<StoredCommit>): SessionView {
  const view = emptyView(sessionId);
  for (const stored of commits) applyCommit(view, stored);
  return view;
}

/** The active branch, root to leaf. */
export function branchOf(view: SessionView, leaf: string | null = view.state?.leaf ?? null): SessionEntry[] {
  const path: SessionEntry[] = [];
  for (let id = leaf; id !== null; ) {
    const entry = view.byId.get(id);
    if (entry === undefined) break;
    path.push(entry);
    id = entry.parent_id;
  }
  return path.reverse();
}

export function messagesOf(view: SessionView): MessageWithEntryId[] {
  return branchOf(view).map((entry) => ({ entry_id: entry.id, message: entry.message }));
}

export function stateViewOf(state: TurnRecord): TurnStateView {
  return {
    session_id: state.session_id,
    state: state.state,
    turn_id: state.turn_id,
    turn_count: state.turn_count,
    ...(state.request.max_turns === null ? {} : { max_turns: state.request.max_turns }),
    awaiting_approval: state.calls.flatMap((call) =>
      call.status === "awaiting" && call.approval !== undefined
        ? [
            {
              function_call_id: call.id,
              function_id: call.function_id,
              args_digest: call.args_digest,
              ...call.approval,
            },
          ]
        : [],
    ),
    ...(state.error === null ? {} : { error: state.error }),
  };
}

/** Whether a session waits: nothing holds its anchor. A session without a commit waits too. */
export function isIdle(tail: StoredCommit | null): boolean {
  return tail === null || tail.kind === "idle";
}

/** Busy in the sense of `on_busy`: a turn is open, parked or has work pending. */
export function isBusy(tail: StoredCommit | null): boolean {
  if (tail === null) return false;
  if (tail.kind !== "idle") return true;
  const state = tail.commit.state;
  return state !== null && state.state !== "stopped" && state.state !== "failed";
}

export function argumentsOf(view: SessionView, callId: string): unknown {
  const id = view.state?.assistant_entry_id;
  const entry = id == null ? undefined : view.byId.get(id);
  if (entry?.message.role !== "assistant") return undefined;
  for (const block of entry.message.content) {
    if (block.type === "function_call" && block.id === callId) return block.arguments;
  }
  return undefined;
}

export type { Commit };
