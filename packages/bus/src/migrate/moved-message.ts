// One journal message as it stands in another shard: the same, except for its subject and the sequences inside it. Pure.
import { type Commit, parseTurnSubject, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { SequenceMap } from "./sequence-map.ts";

export interface JournalMessage {
  readonly seq: number;
  readonly subject: string;
  /** Nats-Msg-Id, Fl-Digest and whatever else its publisher gave it. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly data: Uint8Array;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Large bodies stay where they are: references are moved as they stand. */
export function movedMessage(message: JournalMessage, shard: number, map: SequenceMap): Omit<JournalMessage, "seq"> {
  const isCommit = parseTurnSubject(message.subject)?.part.kind === "commit";
  return {
    subject: subjects.inShard(message.subject, shard),
    headers: message.headers,
    data: isCommit ? encoder.encode(JSON.stringify(movedCommit(commitIn(message), map))) : message.data,
  };
}

export function movedCommit(commit: Commit, map: SequenceMap): Commit {
  return {
    ...commit,
    anchor: map.upTo(commit.anchor),
    cursor: map.upTo(commit.cursor),
    pending: commit.pending.map((item) => {
      const seq = map.of(item.seq);
      if (seq !== null) return { ...item, seq };
      const message = `session ${commit.session_id} waits for input ${item.seq}, which its journal does not hold`;
      throw new FlotillaError("TURN_INVARIANT", message);
    }),
  };
}

export function commitIn({ subject, seq, data }: JournalMessage): Commit {
  try {
    return JSON.parse(decoder.decode(data)) as Commit;
  } catch (cause) {
    throw new FlotillaError("TURN_INVARIANT", `the commit at ${seq} of ${subject} cannot be read`, { cause });
  }
}
