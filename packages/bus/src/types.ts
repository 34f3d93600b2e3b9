// The bus as its users see it. Implementations are in the sibling files, one concern each.
import type {
  Commit,
  CommitKind,
  FunctionContract,
  FunctionManifest,
  InputKind,
  InstanceRecord,
  StoredCommit,
  StoredInput,
  TokenFrame,
  WorkerManifest,
} from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { z } from "zod";
import type { ClaimCheck } from "./claim-check.ts";

export interface BusOptions {
  /** `nats://[user:password@]host:port`, or several, comma-separated. */
  readonly url: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Worker name: also the bus user, the inbox prefix (`_INBOX_<worker>`) and the caller in `Fl-Caller`. */
  readonly worker: string;
  readonly instance: string;
  readonly logger: Logger;
  /** How long to wait for the server and its streams. @default 110000 */
  readonly connectTimeoutMs?: number | undefined;
  /** The number of turn-step shards that is expected; another stored number is refused. */
  readonly shards?: number | undefined;
  /** Namespace grants; merged over the defaults of contracts. */
  readonly grants?: Readonly<Record<string, readonly string[]>> | undefined;
}

export interface CallOptions {
  /** Time left for the answer; sent as `Fl-Timeout-Ms`. @default the contract's or manifest's timeout */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Overrides the caller in `Fl-Caller` (`agent`, `client`, or a worker's name). */
  readonly caller?: string | undefined;
  readonly workspace?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly callId?: string | undefined;
  /** I4: makes the callee keep an outcome record, and attach a repeated request to it. */
  readonly idempotencyKey?: string | undefined;
  readonly epoch?: number | undefined;
  readonly attempt?: number | undefined;
  readonly digest?: string | undefined;
  /** Revision of a dead `running` record that the callee may replace. */
  readonly reclaim?: number | undefined;
  /** Sends to this worker instead of the one that routing chooses. */
  readonly worker?: string | undefined;
}

export interface Bus {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly worker: string;
  readonly instance: string;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly blobs: Blobs;
  readonly journal: Journal;
  readonly outcomes: Outcomes;
  readonly deltas: Deltas;
  /** Carries bodies too large for one message; used by whoever answers calls. */
  readonly claimCheck: ClaimCheck;
  /** True while the connection is up. */
  readonly connected: boolean;
  /** Epoch ms of the last reconnect, 0 before the first: for a moment after it others may still be on their way back. */
  readonly reconnectedAt: number;
  /** A real round trip to the server (for readiness): milliseconds, or throws BUS_UNAVAILABLE. */
  ping(timeoutMs?: number): Promise<number>;
  /** Calls a function by contract: the request is checked against its schema by the callee. */
  call<I extends z.ZodType, O extends z.ZodType>(
    contract: FunctionContract<I, O>,
    payload: z.input<I>,
    options?: CallOptions,
  ): Promise<z.output<O>>;
  /** Calls any function id. */
  callId(functionId: string, payload: unknown, options?: CallOptions): Promise<unknown>;
  /** Runs after every reconnect (not after the first connect); returns the unsubscribe function. */
  onReconnect(handler: () => void): () => void;
  /** Drains and closes; idempotent. */
  close(): Promise<void>;
}

export interface Route {
  readonly worker: string;
  readonly manifest: WorkerManifest;
  readonly fn: FunctionManifest;
  readonly live: boolean;
}

export interface Registry {
  /** The worker that a call of this id reaches now; null when no manifest offers it. No I/O. */
  resolve(functionId: string): Route | null;
  /** Every worker known, with its live instances. */
  workers(): { manifest: WorkerManifest; instances: InstanceRecord[] }[];
  /** Every function that some worker offers and is granted, resolved to the worker that serves it. */
  functions(): Route[];
  isInstanceLive(worker: string, instance: string): boolean;
  /** Resolves when the table changes, or after `timeoutMs`. */
  changed(timeoutMs: number, signal?: AbortSignal): Promise<void>;
  /** Writes the manifest (keeping `first_registered_at`), then the instance key, and renews it until `leave`. */
  register(manifest: Omit<WorkerManifest, "first_registered_at">): Promise<void>;
  leave(): Promise<void>;
  /** A call found nobody on the worker's subject: treat it as not live until it is heard again. */
  reportNoResponders(worker: string): void;
}

/** Durable bodies in the object store under their sha256. */
export interface Blobs {
  put(data: Uint8Array): Promise<string>;
  get(sha256: string): Promise<Uint8Array>;
  putJson(value: unknown): Promise<BlobRef>;
  getJson(ref: BlobRef): Promise<unknown>;
}
/** Stands in a stored record for a value that is kept in the object store. */
export interface BlobRef {
  $blob: string;
  bytes: number;
}

export type CommitExpectation =
  /** CAS on the session's commits: expected last sequence of `turn.<k>.<sid>.c.*`. */
  | { on: "commits"; seq: number }
  /** CAS on everything of the session: expected last sequence of `turn.<k>.<sid>.>`. */
  | { on: "session"; seq: number };

export type InputResult<B> =
  | { kind: "stored"; seq: number }
  | { kind: "exists"; input: StoredInput<B> }
  | { kind: "fenced" };

/** The turn-step stream: inputs and commits of sessions. The only reader and writer of `turn.>`. */
export interface Journal {
  readonly shards: number;
  /**
   * Stores one input, once for ever (expected last subject sequence 0). With `fence`, it is stored only while the
   * session's last sequence is still that one (`on_busy: reject`); otherwise `fenced`.
   */
  publishInput<B>(
    sessionId: string,
    kind: InputKind,
    id: string,
    body: B,
    options?: { digest?: string; fence?: number },
  ): Promise<InputResult<B>>;
  readInput<B>(sessionId: string, kind: InputKind, id: string): Promise<StoredInput<B> | null>;
  readInputAt(seq: number, shard: number): Promise<StoredInput | null>;
  /** The newest commit. `fresh` asks the stream leader. */
  tail(sessionId: string, options?: { fresh?: boolean }): Promise<StoredCommit | null>;
  /** Sequence of the newest message of the session, 0 when there is none: whether the session is known. */
  lastSequence(sessionId: string): Promise<number>;
  /** The newest message of the session as the leader has it; `commit` when it is one, so that it is also the tail. */
  last(sessionId: string): Promise<{ seq: number; commit: StoredCommit | null } | null>;
  /** Commits with a sequence >= `fromSeq`, in order, large bodies filled in. */
  readCommits(sessionId: string, fromSeq: number): Promise<StoredCommit[]>;
  /** Inputs with a sequence > `afterSeq`, in order. */
  readInputs(sessionId: string, afterSeq: number): Promise<StoredInput[]>;
  /** Publishes a commit; a time-out is resolved by reading the tail. `stale`: another writer was first. */
  commit(
    kind: CommitKind,
    commit: Commit,
    expect: CommitExpectation,
  ): Promise<{ kind: "stored"; seq: number } | { kind: "stale" }>;
  /**
   * Live notice of everything stored for a session (republished, so only while connected). Large bodies filled in, in
   * order. Commits whose id `skip` answers true for are left out unread.
   */
  watch(sessionId: string, handler: (message: LiveMessage) => void, skip?: (commitId: string) => boolean): Watch;
  decodeInput(
    subject: string,
    seq: number,
    data: Uint8Array,
    digest: string | null,
    at: number,
  ): Promise<StoredInput | null>;
  decodeCommit(subject: string, seq: number, data: Uint8Array): Promise<StoredCommit | null>;
}
export type LiveMessage =
  /** `bytes`: its size as stored. */
  { kind: "commit"; stored: StoredCommit; bytes: number } | { kind: "input"; input: StoredInput };

export interface Watch {
  /** Resolves once the subscription is at the server. */
  ready(): Promise<void>;
  stop(): void;
}

export type OutcomeRecord =
  | { status: "running"; worker: string; instance: string; epoch: number; at: number }
  | { status: "done"; worker: string; instance: string; epoch: number; result: unknown; at: number; started_at: number }
  | {
      status: "failed";
      worker: string;
      instance: string;
      epoch: number;
      error: {
        code: string;
        message: string;
        field?: string;
        retry_after_ms?: number;
        details?: Record<string, unknown>;
      };
      at: number;
      started_at: number;
    }
  | { status: "cancelled"; by: string; epoch: number; at: number };

/** Outcome records of effectful calls (I4), by idempotency key. TTL 7 days. */
export interface Outcomes {
  read(key: string, options?: { fresh?: boolean }): Promise<{ record: OutcomeRecord; revision: number } | null>;
  /** Stores when the key's revision is `expected` (0 = does not exist); null when it is not. */
  write(key: string, record: OutcomeRecord, expected: number): Promise<number | null>;
}

/** Stored joined token frames of streaming messages. */
export interface Deltas {
  append(sessionId: string, messageId: string, frames: readonly TokenFrame[]): Promise<void>;
  read(sessionId: string, messageId: string): Promise<TokenFrame[]>;
}
