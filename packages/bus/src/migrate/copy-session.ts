// Copying one session into its new shard, message by message, each fenced by the one before it.
//
// C1 What is there already is recognised and kept, so that a copy may be broken off anywhere and be begun again.
// C2 The server forgets an id only after its window: an id that it has seen before the move is sent until it is stored.
import { streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { type MsgHdrs, headers as natsHeaders } from "@nats-io/transport-node";
import { isPermission, isRefused, isWrongSequence } from "../journal-errors.ts";
import { pause } from "../patience.ts";
import { copiedSoFar } from "./compare-sessions.ts";
import { type JournalMessage, movedMessage } from "./moved-message.ts";
import { messageOf } from "./shard-reader.ts";

export interface CopyDeps {
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  /** Contract: called before each message; what it throws breaks the copy off. */
  readonly beforeChange: (what: string) => void | Promise<void>;
}

export interface Copy {
  readonly sessionId: string;
  readonly shard: number;
  readonly source: readonly JournalMessage[];
  /** What the new shard holds of it. */
  readonly target: readonly JournalMessage[];
}

/** Longer than the window in which the server remembers ids. */
const patienceMs = 150_000;

/** Answers how many messages it stored. */
export async function copySession(deps: CopyDeps, copy: Copy): Promise<number> {
  const { sessionId, shard, source, target } = copy;
  const { map, problem } = copiedSoFar(source, target, shard);
  if (problem !== null) throw notACopy(sessionId, shard, problem);
  let last = target.at(-1)?.seq ?? 0;
  for (const original of source.slice(target.length)) {
    await deps.beforeChange(`copy ${sessionId} ${original.seq}`);
    last = await store(deps, copy, movedMessage(original, shard, map), last);
    map.add(original.seq, last);
  }
  return source.length - target.length;
}

export function notACopy(sessionId: string, shard: number, problem: string): FlotillaError {
  const message = `what ${streamNames.turnStep(shard)} holds of session ${sessionId} is not a copy of it: ${problem}`;
  return new FlotillaError("TURN_INVARIANT", message);
}

/** Stores the message as the one after `after`; answers its sequence. */
async function store(
  { js, jsm }: CopyDeps,
  { sessionId, shard }: Copy,
  message: Omit<JournalMessage, "seq">,
  after: number,
): Promise<number> {
  const session = subjects.session(shard, sessionId);
  const expect = { lastSubjectSequence: after, lastSubjectSequenceSubject: session };
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    try {
      const ack = await js.publish(message.subject, message.data, {
        headers: headersOf(message),
        expect,
        timeout: 5_000,
      });
      if (ack.duplicate !== true) return ack.seq;
    } catch (error) {
      if (isPermission(error) || isRefused(error)) throw error;
      if (!isWrongSequence(error) && Date.now() > giveUpAt) {
        throw new FlotillaError("BUS_UNAVAILABLE", `copying session ${sessionId} got no answer`, { cause: error });
      }
    }
    const newest = await jsm.streams.getMessage(streamNames.turnStep(shard), { last_by_subj: session });
    if (newest !== null && newest.seq > after) {
      const stored = messageOf(newest);
      if (stored.subject === message.subject && Buffer.compare(stored.data, message.data) === 0) return stored.seq;
      throw notACopy(sessionId, shard, `something else was stored at ${stored.seq} meanwhile`);
    }
    if (Date.now() > giveUpAt) {
      throw new FlotillaError("BUS_UNAVAILABLE", `the server does not store ${message.subject}: it knows its id`);
    }
    await pause(50);
  }
}

function headersOf(message: Omit<JournalMessage, "seq">): MsgHdrs {
  const headers = natsHeaders();
  for (const [name, value] of message.headers) headers.append(name, value);
  return headers;
}
