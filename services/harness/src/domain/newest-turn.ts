// Where a client without a position begins: a snapshot of what was before the newest turn, then that turn. Pure.
import {
  foldCommits,
  isTerminalState,
  messagesOf,
  type SessionView,
  type StoredCommit,
  type StoredInput,
  stateViewOf,
  type WireEvent,
} from "@flotilla/contracts";
import { messageAtEdge, usageAtEdge } from "./money.ts";
import { type Position, startOfSession } from "./position.ts";

export interface NewestTurn {
  readonly snapshot: Extract<WireEvent, { type: "snapshot" }>;
  /** Just before the newest turn. */
  readonly position: Position;
  /** The commit at the position, if there is one, and those of the newest turn. */
  readonly commits: readonly StoredCommit[];
}

/**
 * The newest turn starts at the first commit whose state has the turn id of the newest commit; when that one has ended
 * and a start is accepted after it, the newest turn is still to come (I1): who starts a turn and then asks for its
 * events never gets those of the turn before. `outstanding`: the inputs after the newest commit's cursor.
 */
export function newestTurn(
  sessionId: string,
  commits: readonly StoredCommit[],
  outstanding: readonly StoredInput[],
): NewestTurn {
  const start = isStartAwaited(commits.at(-1), outstanding) ? commits.length : startOf(commits);
  const before = commits.slice(0, start);
  return {
    snapshot: snapshotOf(foldCommits(sessionId, before)),
    position: endOf(before),
    commits: commits.slice(Math.max(start - 1, 0)),
  };
}

function isStartAwaited(newest: StoredCommit | undefined, outstanding: readonly StoredInput[]): boolean {
  const state = newest?.commit.state ?? null;
  if (newest === undefined || state === null || !isTerminalState(state.state)) return false;
  return [...newest.commit.pending, ...outstanding].some(({ kind }) => kind === "start");
}

function startOf(commits: readonly StoredCommit[]): number {
  const turnId = commits.at(-1)?.commit.state?.turn_id;
  const found = turnId === undefined ? -1 : commits.findIndex(({ commit }) => commit.state?.turn_id === turnId);
  return found === -1 ? commits.length : found;
}

function snapshotOf(view: SessionView): NewestTurn["snapshot"] {
  return {
    type: "snapshot",
    state: view.state === null ? null : { ...stateViewOf(view.state), usage: usageAtEdge(view.state.usage) },
    messages: messagesOf(view).map(({ entry_id, message }) => ({ entry_id, message: messageAtEdge(message) })),
  };
}

function endOf(commits: readonly StoredCommit[]): Position {
  const last = commits.at(-1);
  if (last === undefined) return startOfSession;
  return { seq: last.seq, index: Math.max(last.commit.events.length - 1, 0), text: null };
}
