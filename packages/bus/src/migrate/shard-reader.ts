// Reading a shard for a move: which sessions it holds, as its leader counts them, and every message of one.
import { parseTurnSubject, streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import { readBatch } from "../direct-read.ts";
import { pause } from "../patience.ts";
import type { JournalMessage } from "./moved-message.ts";

/** A replica of the stream may be behind its leader; this is how long it is asked again. */
const patienceMs = 30_000;

/** Number of messages by session. */
export async function sessionsIn(jsm: JetStreamManager, shard: number): Promise<Map<string, number>> {
  const filter = { subjects_filter: subjects.turnStepStream(shard) };
  const { state } = await jsm.streams.info(streamNames.turnStep(shard), filter);
  const sessions = new Map<string, number>();
  for (const [subject, count] of Object.entries(state.subjects ?? {})) {
    const sessionId = parseTurnSubject(subject)?.sessionId;
    if (sessionId !== undefined) sessions.set(sessionId, (sessions.get(sessionId) ?? 0) + count);
  }
  return sessions;
}

/** Oldest first; `count` is how many there are. */
export async function readSession(
  jsm: JetStreamManager,
  place: { readonly shard: number; readonly sessionId: string; readonly count: number },
): Promise<JournalMessage[]> {
  const stream = streamNames.turnStep(place.shard);
  const subject = subjects.session(place.shard, place.sessionId);
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    const found = place.count === 0 ? [] : await readAll(jsm, stream, subject);
    if (found.length >= place.count) return found.map(messageOf);
    if (Date.now() > giveUpAt) {
      const message = `session ${place.sessionId} could not be read whole: ${found.length} of ${place.count} messages`;
      throw new FlotillaError("BUS_UNAVAILABLE", message);
    }
    await pause(100);
  }
}

async function readAll(jsm: JetStreamManager, stream: string, subject: string): Promise<StoredMsg[]> {
  const all: StoredMsg[] = [];
  for (let seq = 1; ; ) {
    const page = await readBatch(jsm, stream, { seq, next_by_subj: subject, batch: 256 });
    all.push(...page);
    const last = page.at(-1);
    if (last === undefined || last.pending === 0) return all;
    seq = last.seq + 1;
  }
}

/** Of the server's own headers only the id: the others say under what it was published and how it was read. */
export function messageOf(message: StoredMsg): JournalMessage {
  const headers: [string, string][] = [];
  for (const [name, values] of message.header) {
    if (name === "Nats-Msg-Id" || !name.startsWith("Nats-")) for (const value of values) headers.push([name, value]);
  }
  return { seq: message.seq, subject: message.subject, headers, data: message.data };
}
