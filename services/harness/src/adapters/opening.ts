// How a stream begins: which commits to replay from a position, or a snapshot when there is none to continue from.
import type { Bus } from "@flotilla/bus";
import type { StoredCommit } from "@flotilla/contracts";
import { newestTurn } from "../domain/newest-turn.ts";
import { formatPosition, type Position } from "../domain/position.ts";
import { type SentEvent, SessionStream } from "../domain/session-stream.ts";

export interface Opening {
  readonly stream: SessionStream;
  readonly first: readonly SentEvent[];
  /** In order; the ones at or before the position only set the state. */
  readonly commits: readonly StoredCommit[];
}

type Journal = Bus["journal"];

export async function openStream(journal: Journal, sessionId: string, from: Position | null): Promise<Opening> {
  const commits = from === null ? null : await commitsFrom(journal, sessionId, from);
  if (from === null || commits === null) return withSnapshot(journal, sessionId);
  return { stream: new SessionStream(from), first: [], commits };
}

async function withSnapshot(journal: Journal, sessionId: string): Promise<Opening> {
  const all = await journal.readCommits(sessionId, 1);
  const outstanding = await journal.readInputs(sessionId, all.at(-1)?.commit.cursor ?? 0);
  const { snapshot, position, commits } = newestTurn(sessionId, all, outstanding);
  return {
    stream: new SessionStream(position),
    first: [{ id: formatPosition(position), event: snapshot }],
    commits,
  };
}

/** Null when the position cannot be continued: it is beyond the journal, or what follows it was deleted. */
async function commitsFrom(journal: Journal, sessionId: string, from: Position): Promise<StoredCommit[] | null> {
  if (from.seq > (await journal.lastSequence(sessionId))) return null;
  const commits = await journal.readCommits(sessionId, Math.max(from.seq, 1));
  if (commits[0]?.seq === from.seq) return commits;
  // The position is that of an input (or the start): the commit before it tells which message streams there.
  const before = await commitBefore(journal, sessionId, from, commits);
  if (before !== null) return [before, ...commits];
  const isWhole = commits[0] === undefined || commits[0].commit.seq_no <= 1;
  if (!isWhole || (from.seq > 0 && (await isBeforeSession(journal, sessionId, from)))) return null;
  return commits;
}

/** Sessions that were moved to another shard start above every position that was given out before. */
async function isBeforeSession(journal: Journal, sessionId: string, from: Position): Promise<boolean> {
  const [first] = await journal.readInputs(sessionId, 0);
  return first !== undefined && first.seq > from.seq;
}

async function commitBefore(
  journal: Journal,
  sessionId: string,
  from: Position,
  after: readonly StoredCommit[],
): Promise<StoredCommit | null> {
  if (from.seq === 0) return null;
  if (after.length === 0) return journal.tail(sessionId, { fresh: true });
  const all = await journal.readCommits(sessionId, 1);
  return all.findLast((stored) => stored.seq < from.seq) ?? null;
}
