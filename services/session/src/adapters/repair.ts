// Repairing the projection from the journal (I7): a full rebuild into a new generation, or catching up from the
// checkpoint after Redis restarted. The live projector goes on meanwhile; the sequence rule makes that safe.
//
// R1 The end of the journal is read after the generation was begun: what is stored later reaches it by live writes.
// R2 A repair counts only if Redis is still the same process and still holds the generation when it ends.
import type { Bus } from "@flotilla/bus";
import { randomId, type StoredCommit } from "@flotilla/contracts";
import { ensureFlotillaError, FlotillaError } from "@flotilla/errors";
import { keys, type ProjectionStatus, projectionOf, type State } from "@flotilla/state";
import type { Logger } from "@flotilla/telemetry";
import { journalIdentity, newestCommits, readShardCommits } from "./commit-reader.ts";

export interface RepairDeps {
  readonly bus: Bus;
  readonly state: State;
  readonly logger: Logger;
}

export interface Rebuilt {
  sessions: number;
  commits: number;
}

/** How long a repair that died keeps others away. */
const lockTtlMs = 5_000;
const lockRenewMs = 1_000;
const attempts = 5;

export interface Repair {
  /** Null while another replica repairs. */
  rebuild(options: { dropCurrent: boolean; signal: AbortSignal }): Promise<Rebuilt | null>;
  catchUp(status: ProjectionStatus, signal: AbortSignal): Promise<boolean>;
  /** Applies these commits now, whoever else holds them: for a reader that cannot wait for a dead replica's share. */
  fill(range: { shard: number; fromSeq: number; toSeq: number; signal: AbortSignal }): Promise<void>;
}

export function createRepair(deps: RepairDeps): Repair {
  const { projection } = deps.state;
  return {
    rebuild: ({ dropCurrent, signal }) =>
      withLock(deps, signal, async (token, held) => {
        for (let attempt = 1; attempt <= attempts; attempt++) {
          const built = await buildGeneration(deps, { token, dropCurrent, signal: held });
          if (built !== null) return built;
          deps.logger.warn("the projection changed under a rebuild, which starts again", { attempt });
        }
        throw new FlotillaError("STORE_UNAVAILABLE", `redis was flushed or restarted during ${attempts} rebuilds`);
      }),
    async catchUp(status, signal) {
      const confirmed = await withLock(deps, signal, async (_, held) => {
        const through = await newestCommits(deps.bus);
        for (const [shard, toSeq] of through) {
          const fromSeq = (status.through.get(shard) ?? 0) + 1;
          await replay(deps, { shard, fromSeq, toSeq, signal: held, generation: "" });
        }
        return projection.confirm(status.runId, through);
      });
      return confirmed === true;
    },
    async fill(range) {
      await replay(deps, { ...range, generation: "" });
    },
  };
}

/** One attempt; null when Redis lost it in between. */
async function buildGeneration(
  deps: RepairDeps,
  options: { token: string; dropCurrent: boolean; signal: AbortSignal },
): Promise<Rebuilt | null> {
  const { token, dropCurrent, signal } = options;
  const { projection } = deps.state;
  const generation = keys.newGeneration();
  const journal = await journalIdentity(deps.bus);
  const begun = await projection.begin(token, generation, { dropCurrent });
  if (begun === null) return null;
  const through = await newestCommits(deps.bus);
  let commits = 0;
  for (const [shard, toSeq] of through) {
    const count = await replay(deps, { shard, fromSeq: 1, toSeq, signal, generation });
    if (count === null) return null;
    commits += count;
  }
  if (!(await projection.finish({ token, generation, runId: begun.runId, journal, through }))) return null;
  const removed = await projection.sweep();
  const sessions = await projection.countSessions();
  deps.logger.info("the projection was rebuilt", { generation, sessions, commits, removed_keys: removed });
  return { sessions, commits };
}

/** Applies what is stored up to the end; null when the projection it writes to is gone. */
async function replay(
  deps: RepairDeps,
  options: { shard: number; fromSeq: number; toSeq: number; signal: AbortSignal; generation: string },
): Promise<number | null> {
  let isGone = false;
  const stop = new AbortController();
  const take = async (commits: StoredCommit[]): Promise<void> => {
    const { projection } = deps.state;
    const results = await Promise.all(
      commits.map((commit) => projection.apply(projectionOf(commit), options.generation)),
    );
    if (!results.includes("lost") && !results.includes("superseded")) return;
    isGone = true;
    stop.abort();
  };
  const { shard, fromSeq, toSeq } = options;
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const skip = (seq: number, error: unknown): void =>
    deps.logger.error("a commit cannot be read and is left out of the projection", {
      shard,
      seq,
      error: String(error),
    });
  try {
    const count = await readShardCommits({ bus: deps.bus, shard, fromSeq, toSeq, signal, take, skip });
    return isGone ? null : count;
  } catch (error) {
    if (isGone) return null;
    throw error;
  }
}

/** Runs while the lock is held; `held` aborts when it was lost or the caller gives up. */
async function withLock<T>(
  deps: RepairDeps,
  signal: AbortSignal,
  work: (token: string, held: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const { projection } = deps.state;
  const token = randomId();
  if (!(await projection.lock(token, lockTtlMs))) return null;
  const lost = new AbortController();
  const giveUp = (cause: unknown): void => lost.abort(ensureFlotillaError(cause));
  const renewal = setInterval(() => {
    projection.renew(token, lockTtlMs).then((isHeld) => {
      if (!isHeld) giveUp(new FlotillaError("STORE_UNAVAILABLE", "the repair lock was lost"));
    }, giveUp);
  }, lockRenewMs);
  try {
    return await work(token, AbortSignal.any([signal, lost.signal]));
  } finally {
    clearInterval(renewal);
    await projection.unlock(token).catch((error: unknown) => {
      deps.logger.debug("the repair lock runs out by itself", { error: String(error) });
    });
  }
}
