// Whether a session's copy in another shard is the session: message by message, and folded. Pure.
import { foldCommits, parseTurnSubject, type SessionView, type StoredCommit } from "@flotilla/contracts";
import { commitIn, type JournalMessage, movedMessage } from "./moved-message.ts";
import { SequenceMap } from "./sequence-map.ts";

/** How far the copy has come: the sequences so far, or where it is something else than a beginning of the session. */
export function copiedSoFar(
  source: readonly JournalMessage[],
  target: readonly JournalMessage[],
  shard: number,
): { map: SequenceMap; problem: string | null } {
  const map = new SequenceMap();
  if (target.length > source.length) return { map, problem: `it holds ${target.length - source.length} messages more` };
  for (const [index, copy] of target.entries()) {
    const original = source[index];
    if (original === undefined || !isSame(movedMessage(original, shard, map), copy)) {
      return { map, problem: `its message at ${copy.seq} is not the one at ${original?.seq} of the source` };
    }
    map.add(original.seq, copy.seq);
  }
  return { map, problem: null };
}

/** Why the copy is not the whole session; null when it is. */
export function differenceOf(
  sessionId: string,
  source: readonly JournalMessage[],
  target: readonly JournalMessage[],
  shard: number,
): string | null {
  const { problem } = copiedSoFar(source, target, shard);
  if (problem !== null) return problem;
  if (target.length < source.length) return `${source.length - target.length} messages are missing`;
  const [before, after] = [source, target].map((side) => foldCommits(sessionId, commitsIn(side)));
  if (before === undefined || after === undefined) return null;
  return withoutSequences(before) === withoutSequences(after) ? null : "its commits fold to another session";
}

function isSame(expected: Omit<JournalMessage, "seq">, actual: JournalMessage): boolean {
  return (
    expected.subject === actual.subject &&
    Buffer.compare(expected.data, actual.data) === 0 &&
    JSON.stringify(sorted(expected.headers)) === JSON.stringify(sorted(actual.headers))
  );
}

function sorted(headers: JournalMessage["headers"]): string[] {
  return headers.map((header) => header.join(": ")).sort();
}

function* commitsIn(messages: readonly JournalMessage[]): Generator<StoredCommit> {
  for (const message of messages) {
    const part = parseTurnSubject(message.subject)?.part;
    if (part?.kind === "commit") yield { seq: message.seq, kind: part.commit, commit: commitIn(message) };
  }
}

function withoutSequences({ tail, state, entries, outcomes }: SessionView): string {
  const { cursor: _, anchor: __, pending, ...rest } = tail?.commit ?? { cursor: 0, anchor: 0, pending: [] };
  const waiting = pending.map(({ kind, id }) => ({ kind, id }));
  return JSON.stringify({ kind: tail?.kind, rest, waiting, state, entries, outcomes: [...outcomes] });
}
