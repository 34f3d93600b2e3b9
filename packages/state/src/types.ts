// The projection of the journal in Redis (I7): what is written, how it is guarded, and who may read it.
import type { PendingApproval, SessionSummary } from "@flotilla/contracts";

/** One row of the session list; `error` is that of the newest turn. */
export interface SessionRow extends SessionSummary {
  created_at: number;
  error?: { code: string; message: string };
}

/** A transcript entry without its body: enough for lists and search. */
export interface EntryRow {
  id: string;
  parent_id: string | null;
  role: string;
  timestamp: number;
  /** At most 2,000 characters. */
  text: string;
}

/** Everything one commit says about a session's projection. Pure data, applied by one script. */
export interface ProjectionWrite {
  /** Stream sequence of the commit; only a higher one replaces what is stored. */
  readonly seq: number;
  readonly sessionId: string;
  readonly workspace: string;
  readonly at: number;
  readonly row: Omit<SessionRow, "created_at" | "last_message_summary">;
  /** Ids of the calls that wait for a decision after this commit. */
  readonly awaiting: readonly string[];
  /** Full rows of those whose arguments this commit carries. */
  readonly requested: readonly PendingApproval[];
  /** Of the newest entry this commit added; null when that has no text, undefined when it added none. */
  readonly summary: string | null | undefined;
  readonly entries: readonly EntryRow[];
}

/**
 * `applied`: newer than what was stored. `older`: a later commit was there first. `lost`: Redis no longer holds the
 * projection, nothing was written. `superseded`: the generation that was asked for is not being built (any more).
 */
export type Applied = "applied" | "older" | "lost" | "superseded";

export interface ProjectionStatus {
  /**
   * `complete`: readers may trust it. `lost`: emptied, or never built. `foreign`: built from another journal.
   * `restarted`: another Redis process than the one it was confirmed in, so its last second may be missing.
   */
  readonly condition: "complete" | "lost" | "foreign" | "restarted";
  /** The generation that is being built. */
  readonly building: string | null;
  /** Whether somebody holds the repair lock. */
  readonly locked: boolean;
  readonly runId: string;
  /** Per shard: every commit up to this sequence is in. */
  readonly through: ReadonlyMap<number, number>;
}

/** The writer's side; only the session worker uses it. */
export interface ProjectionStore {
  /** Writes to every live generation, or only to the one that is being built. */
  apply(write: ProjectionWrite, onlyBuilding?: string): Promise<Applied>;
  /** `journal` identifies the streams the projection is made from. */
  inspect(journal: string): Promise<ProjectionStatus>;
  /** One repair at a time over all replicas; false while somebody else holds it. */
  lock(token: string, ttlMs: number): Promise<boolean>;
  /** False when it was lost. */
  renew(token: string, ttlMs: number): Promise<boolean>;
  unlock(token: string): Promise<void>;
  /** Starts a generation; null without the lock. Live writes go into it from now on. */
  begin(token: string, generation: string, options: { dropCurrent: boolean }): Promise<{ runId: string } | null>;
  /** Makes the built generation the current one; false when it was flushed, superseded or Redis restarted. */
  finish(build: {
    token: string;
    generation: string;
    runId: string;
    journal: string;
    through: ReadonlyMap<number, number>;
  }): Promise<boolean>;
  /** After a restart: everything up to `through` is in again, in the process `runId`. */
  confirm(runId: string, through: ReadonlyMap<number, number>): Promise<boolean>;
  /** Moves the checkpoints forward; false when the projection is not complete in this Redis process. */
  checkpoint(through: ReadonlyMap<number, number>): Promise<boolean>;
  /** Removes the keys of generations that are neither current nor being built; call with the lock. */
  sweep(): Promise<number>;
  countSessions(): Promise<number>;
}

export interface ListQuery {
  readonly limit: number;
  readonly offset: number;
  readonly order: "asc" | "desc";
  readonly workspace?: string | undefined;
}

export interface SessionPage {
  sessions: SessionRow[];
  total: number;
}

/** Every call fails within seconds with STORE_UNAVAILABLE while Redis is away or its projection is not built. */
export interface State {
  /** True while the connection is up. */
  readonly connected: boolean;
  /** A real round trip, in milliseconds. */
  ping(): Promise<number>;
  /** Runs each time the connection becomes usable; returns the unsubscribe function. */
  onReady(handler: () => void): () => void;
  readonly projection: ProjectionStore;
  /** Sessions by time of their last change. */
  listSessions(query: ListQuery): Promise<SessionPage>;
  /** Calls that wait for a human, oldest first. */
  listApprovals(): Promise<PendingApproval[]>;
  getTurnState(sessionId: string): Promise<SessionRow | null>;
  listEntries(sessionId: string): Promise<EntryRow[]>;
  close(): Promise<void>;
}
