// Every Redis key of the product. Nothing else may build one.
//
// The projection lives in generations: a rebuild fills a new one beside the current one and then takes its place.
import { randomBytes } from "node:crypto";

const root = "flotilla:";

export const keys = {
  root,
  /** Hash: current and building generation, where it was confirmed, checkpoints. Its absence means the projection is lost. */
  projection: `${root}projection`,
  /** Held by the one who repairs the projection. */
  repairLock: `${root}projection-repair`,
  newGeneration: (): string => `p${randomBytes(4).toString("hex")}`,
  /** SCAN pattern that matches the keys of every generation. */
  anyGeneration: `${root}p????????:*`,
  generationOf: (key: string): string | null => /^flotilla:(p[0-9a-f]{8}):/.exec(key)?.[1] ?? null,

  /** Names within a generation; the scripts put `flotilla:<generation>:` before them. */
  scope: {
    /** Hash: row, its sequence, awaiting calls, summary. */
    turnState: (sessionId: string): string => `turn_state:${sessionId}`,
    turnStatePrefix: "turn_state:",
    /** Hash: `<sid>/<cid>` to the pending approval. */
    approvals: "approvals",
    approval: (sessionId: string, callId: string): string => `${sessionId}/${callId}`,
    /** Sorted set of session ids by time of their last change; one for all and one per workspace. */
    sessions: "sessions",
    sessionsOf: (workspace: string): string => `sessions:${workspace}`,
    /** Hash: entry id to `<seq>.<index in its commit> <entry row>`. */
    entries: (sessionId: string): string => `entries:${sessionId}`,
  },
} as const;
