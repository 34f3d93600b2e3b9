// Where a client without a position begins: a snapshot of what was before the newest turn, then that turn. Pure.
import {
  foldCommits,
  messagesOf,
  type SessionView,
  type StoredCommit,
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

/** The newest turn starts at the first commit whose state has the turn id of the newest commit. */
export function newestTurn(sessionId: string, commits: readonly StoredCommit[]): NewestTurn {
  const turnId = commits.at(-1)?.commit.state?.turn_id;
  const found = turnId === undefined ? -1 : commits.findIndex(({ commit }) => commit.state?.turn_id === turnId);
  const start = found === -1 ? commits.length : found;
  const before = commits.slice(0, start);
  return {
    snapshot: snapshotOf(foldCommits(sessionId, before)),
    position: endOf(before),
    commits: commits.slice(Math.max(start - 1, 0)),
  };
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
