// The turn-step stream: inputs and commits of sessions. The only reader and writer of `turn.>`.
//
// J1 An input is stored once for ever: expected last sequence 0 on its own subject (I6).
// J2 A commit is fenced by the session's last commit or last message (I2); an unknown fate is looked up, never guessed.
// J3 Large bodies are durable before the record that refers to them (I1, I12).
import {
  type Commit,
  type CommitKind,
  headerNames,
  type InputKind,
  parseTurnSubject,
  type StoredCommit,
  type StoredInput,
  shardOf,
  streamNames,
  subjects,
} from "@flotilla/contracts";
import { FlotillaError, isFlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { JetStreamClient, JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import { type Msg, type NatsConnection, headers as natsHeaders } from "@nats-io/transport-node";
import { readBatch } from "./direct-read.ts";
import { commitLimitBytes, packCommit, packInput, unpackCommit, unpackInput } from "./journal-body.ts";
import { isPermission, isRefused, isWrongSequence } from "./journal-errors.ts";
import type { Blobs, CommitExpectation, InputResult, Journal, Watch } from "./types.ts";

export interface JournalDeps {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly blobs: Blobs;
  readonly shards: number;
  readonly logger: Logger;
  /** How long an operation goes on trying while the bus is away. @default 120000 */
  readonly patienceMs?: number;
}

const publishTimeoutMs = 2_000;
const decoder = new TextDecoder();

export function createJournal(deps: JournalDeps): Journal {
  const { nc, js, jsm, blobs, shards } = deps;
  const patienceMs = deps.patienceMs ?? 120_000;
  const place = (sessionId: string): { shard: number; stream: string } => {
    const shard = shardOf(sessionId, shards);
    return { shard, stream: streamNames.turnStep(shard) };
  };

  /** Runs until it answers; what cannot be known is tried again after a pause, up to the patience. */
  async function persist<T>(what: string, attempt: (tries: number) => Promise<T>): Promise<T> {
    const giveUpAt = Date.now() + patienceMs;
    for (let tries = 0; ; tries++) {
      try {
        return await attempt(tries);
      } catch (error) {
        if (nc.isClosed()) throw new FlotillaError("BUS_UNAVAILABLE", "the bus connection is closed", { cause: error });
        if (isPermission(error))
          throw new FlotillaError("BUS_PERMISSION", `${what} is not allowed for this bus user`, { cause: error });
        if (error instanceof FlotillaError) throw error;
        if (isRefused(error)) throw new FlotillaError("COMMIT_TOO_LARGE", `${what} was refused`, { cause: error });
        if (Date.now() > giveUpAt)
          throw new FlotillaError("BUS_UNAVAILABLE", `${what} got no answer`, { cause: error });
        await pause(Math.min(20 * 2 ** tries, 500));
      }
    }
  }

  /** The leader's newest message on a subject (wildcards allowed). */
  async function newest(stream: string, subject: string): Promise<StoredMsg | null> {
    return persist("reading the journal", () => jsm.streams.getMessage(stream, { last_by_subj: subject }));
  }

  async function commitOf(message: { subject: string; seq: number; data: Uint8Array }): Promise<StoredCommit | null> {
    const parsed = parseTurnSubject(message.subject);
    if (parsed?.part.kind !== "commit") return null;
    const commit = await unpackCommit(JSON.parse(decoder.decode(message.data)) as Commit, blobs);
    return { seq: message.seq, kind: parsed.part.commit, commit };
  }

  async function inputOf(
    subject: string,
    seq: number,
    data: Uint8Array,
    digest: string | null,
    at: number,
  ): Promise<StoredInput | null> {
    const parsed = parseTurnSubject(subject);
    if (parsed?.part.kind !== "input") return null;
    const input = { seq, kind: parsed.part.input, id: parsed.part.id, digest, at };
    try {
      return { ...input, body: await unpackInput(data, blobs) };
    } catch (error) {
      // Reading it again cannot help: it is taken and visibly refused, so that it holds nothing up (I6).
      if (isFlotillaError(error) && error.disposition === "retry") throw error;
      return { ...input, body: null, unreadable: error instanceof Error ? error.message : String(error) };
    }
  }

  const inputOfStored = (message: StoredMsg): Promise<StoredInput | null> =>
    inputOf(
      message.subject,
      message.seq,
      message.data,
      message.header.get(headerNames.digest) || null,
      message.time.getTime(),
    );

  const journal: Journal = {
    shards,

    async publishInput<B>(
      sessionId: string,
      kind: InputKind,
      id: string,
      body: B,
      options: { digest?: string; fence?: number } = {},
    ): Promise<InputResult<B>> {
      const { shard, stream } = place(sessionId);
      const subject = subjects.input(shard, sessionId, kind, id);
      const data = await packInput(body, blobs);
      const headers = natsHeaders();
      if (options.digest !== undefined) headers.set(headerNames.digest, options.digest);
      const expect =
        options.fence === undefined
          ? { lastSubjectSequence: 0 }
          : { lastSubjectSequence: options.fence, lastSubjectSequenceSubject: subjects.session(shard, sessionId) };
      return persist("storing the input", async () => {
        try {
          const ack = await js.publish(subject, data, { headers, expect, timeout: publishTimeoutMs });
          return { kind: "stored", seq: ack.seq };
        } catch (error) {
          if (!isWrongSequence(error)) throw error;
          const found = await newest(stream, subject);
          const input = found === null ? null : await inputOfStored(found);
          if (input !== null) return { kind: "exists", input: input as StoredInput<B> };
          return { kind: "fenced" };
        }
      });
    },

    async readInput<B>(sessionId: string, kind: InputKind, id: string): Promise<StoredInput<B> | null> {
      const { shard, stream } = place(sessionId);
      const found = await newest(stream, subjects.input(shard, sessionId, kind, id));
      return found === null ? null : ((await inputOfStored(found)) as StoredInput<B> | null);
    },

    async readInputAt(seq: number, shard: number): Promise<StoredInput | null> {
      const found = await persist("reading the journal", () =>
        jsm.direct.getMessage(streamNames.turnStep(shard), { seq }),
      );
      return found === null ? null : inputOfStored(found);
    },

    async tail(sessionId: string, options: { fresh?: boolean } = {}): Promise<StoredCommit | null> {
      const { shard, stream } = place(sessionId);
      const subject = subjects.commitsOf(shard, sessionId);
      if (options.fresh === true) {
        const found = await newest(stream, subject);
        return found === null ? null : commitOf(found);
      }
      const found = await persist("reading the journal", () => readBatch(jsm, stream, { multi_last: [subject] }));
      const last = found.reduce<StoredMsg | null>(
        (best, item) => (best === null || item.seq > best.seq ? item : best),
        null,
      );
      return last === null ? null : commitOf(last);
    },

    async lastSequence(sessionId: string): Promise<number> {
      const { shard, stream } = place(sessionId);
      return (await newest(stream, subjects.session(shard, sessionId)))?.seq ?? 0;
    },

    async last(sessionId: string): Promise<{ seq: number; commit: StoredCommit | null } | null> {
      const { shard, stream } = place(sessionId);
      const found = await newest(stream, subjects.session(shard, sessionId));
      return found === null ? null : { seq: found.seq, commit: await commitOf(found) };
    },

    async readCommits(sessionId: string, fromSeq: number): Promise<StoredCommit[]> {
      const { shard, stream } = place(sessionId);
      const found = await readAll(stream, subjects.commitsOf(shard, sessionId), fromSeq);
      const commits = await Promise.all(found.map(commitOf));
      return commits.filter((commit) => commit !== null);
    },

    async readInputs(sessionId: string, afterSeq: number): Promise<StoredInput[]> {
      const { shard, stream } = place(sessionId);
      const found = await readAll(stream, subjects.inputsOf(shard, sessionId), afterSeq + 1);
      const inputs = await Promise.all(found.map(inputOfStored));
      return inputs.filter((input) => input !== null);
    },

    async commit(kind: CommitKind, commit: Commit, expectation: CommitExpectation) {
      const { shard, stream } = place(commit.session_id);
      const subject = subjects.commit(shard, commit.session_id, kind);
      const data = await packCommit(commit, blobs);
      if (data.length > commitLimitBytes) {
        throw new FlotillaError("COMMIT_TOO_LARGE", `a commit of ${data.length} bytes exceeds ${commitLimitBytes}`);
      }
      const expectSubject =
        expectation.on === "commits"
          ? subjects.commitsOf(shard, commit.session_id)
          : subjects.session(shard, commit.session_id);
      const expect = { lastSubjectSequence: expectation.seq, lastSubjectSequenceSubject: expectSubject };
      return persist("committing", async (tries) => {
        try {
          const ack = await js.publish(subject, data, { msgID: commit.commit_id, expect, timeout: publishTimeoutMs });
          if (ack.duplicate !== true) return { kind: "stored" as const, seq: ack.seq };
        } catch (error) {
          if (!isWrongSequence(error)) throw error;
          if (tries === 0) return { kind: "stale" as const };
        }
        // J2: an earlier try may have been stored; only the commit id at the tail tells.
        return findMine(stream, subjects.commitsOf(shard, commit.session_id), commit, expectation.seq);
      });
    },

    watch(sessionId, handler, skip): Watch {
      const { shard } = place(sessionId);
      let queue = Promise.resolve();
      const subscription = nc.subscribe(subjects.live(subjects.session(shard, sessionId)), {
        callback: (error, message) => {
          if (error !== null || isSkipped(message, skip)) return;
          queue = queue
            .then(() => deliver(message, handler))
            .catch((cause: unknown) => {
              deps.logger.error("a live journal message could not be handled", {
                session_id: sessionId,
                error: String(cause),
              });
            });
        },
      });
      return { ready: () => nc.flush(), stop: () => subscription.unsubscribe() };
    },

    decodeInput: inputOf,
    decodeCommit: (subject, seq, data) => commitOf({ subject, seq, data }),
  };

  async function deliver(message: Msg, handler: Parameters<Journal["watch"]>[1]): Promise<void> {
    const subject = message.headers?.get("Nats-Subject") || message.subject.slice("live.".length);
    const seq = Number(message.headers?.get("Nats-Sequence"));
    const parsed = parseTurnSubject(subject);
    if (parsed?.part.kind === "commit") {
      const stored = await commitOf({ subject, seq, data: message.data });
      if (stored !== null) handler({ kind: "commit", stored, bytes: message.data.length });
    } else if (parsed?.part.kind === "input") {
      const at = Date.parse(message.headers?.get("Nats-Time-Stamp") ?? "") || Date.now();
      const input = await inputOf(subject, seq, message.data, message.headers?.get(headerNames.digest) || null, at);
      if (input !== null) handler({ kind: "input", input });
    }
  }

  async function readAll(stream: string, subject: string, fromSeq: number): Promise<StoredMsg[]> {
    return persist("reading the journal", async () => {
      const all: StoredMsg[] = [];
      for (let seq = Math.max(fromSeq, 1); ; ) {
        const page = await readBatch(jsm, stream, { seq, next_by_subj: subject, batch: 256 });
        all.push(...page);
        const last = page.at(-1);
        if (last === undefined || last.pending === 0) return all;
        seq = last.seq + 1;
      }
    });
  }

  async function findMine(
    stream: string,
    subject: string,
    commit: Commit,
    after: number,
  ): Promise<{ kind: "stored"; seq: number } | { kind: "stale" }> {
    const tail = await newest(stream, subject);
    if (tail !== null && (JSON.parse(decoder.decode(tail.data)) as Commit).commit_id === commit.commit_id)
      return { kind: "stored", seq: tail.seq };
    const later = await readAll(stream, subject, after + 1);
    const mine = later.find(
      (message) => (JSON.parse(decoder.decode(message.data)) as Commit).commit_id === commit.commit_id,
    );
    return mine === undefined ? { kind: "stale" } : { kind: "stored", seq: mine.seq };
  }

  return journal;
}

/** The id of a commit is also the id of its message. */
function isSkipped(message: Msg, skip: ((commitId: string) => boolean) | undefined): boolean {
  const id = skip === undefined ? undefined : message.headers?.get("Nats-Msg-Id");
  return skip !== undefined && id !== undefined && id !== "" && skip(id);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
