// Reading the commits of a whole shard in order, without a consumer: what a repair of the projection is made from.

import { type Bus, readBatch } from "@flotilla/bus";
import { consumerNames, type StoredCommit, streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";

const batchSize = 256;
/** A replica of the stream may be behind its leader; this is how long it is asked again. */
const patienceMs = 30_000;

/**
 * Names the streams a projection was made from, by the birth of their consumers: streams that were made anew start
 * their sequences at 1 again, and a projection of the old ones must not be taken for one of these.
 */
export async function journalIdentity(bus: Bus): Promise<string> {
  const parts: string[] = [];
  for (let shard = 0; shard < bus.journal.shards; shard++) {
    const { created } = await bus.jsm.consumers.info(streamNames.turnStep(shard), consumerNames.projector);
    parts.push(`${shard}@${String(created)}`);
  }
  return parts.join(",");
}

/** Sequence of a shard's newest commit as the stream's leader sees it now; 0 without one. */
export async function newestCommitOf(bus: Bus, shard: number): Promise<number> {
  const query = { last_by_subj: subjects.turnStepCommits(shard) };
  return (await bus.jsm.streams.getMessage(streamNames.turnStep(shard), query))?.seq ?? 0;
}

export async function newestCommits(bus: Bus): Promise<Map<number, number>> {
  const newest = new Map<number, number>();
  for (let shard = 0; shard < bus.journal.shards; shard++) newest.set(shard, await newestCommitOf(bus, shard));
  return newest;
}

export interface ReadCommits {
  readonly bus: Bus;
  readonly shard: number;
  readonly fromSeq: number;
  /** The last commit to read. */
  readonly toSeq: number;
  readonly signal: AbortSignal;
  /** Contract: called with batches in stream order; a failure ends the reading. */
  readonly take: (commits: StoredCommit[]) => Promise<void>;
  /** A commit that cannot be read, and why. */
  readonly skip: (seq: number, error: unknown) => void;
}

/** Every commit from `fromSeq` to `toSeq`; answers how many there were. */
export async function readShardCommits(options: ReadCommits): Promise<number> {
  const { bus, shard, toSeq, signal } = options;
  const stream = streamNames.turnStep(shard);
  const giveUpAt = Date.now() + patienceMs;
  let count = 0;
  for (let seq = Math.max(options.fromSeq, 1); seq <= toSeq; ) {
    signal.throwIfAborted();
    const page = await readBatch(bus.jsm, stream, {
      seq,
      next_by_subj: subjects.turnStepCommits(shard),
      batch: batchSize,
    });
    const within = page.filter((message) => message.seq <= toSeq);
    const commits = await Promise.all(within.map((message) => decode(options, message)));
    await options.take(commits.filter((commit) => commit !== null));
    count += within.length;
    const last = page.at(-1);
    if (last !== undefined) seq = last.seq + 1;
    else if (Date.now() > giveUpAt) {
      throw new FlotillaError("BUS_UNAVAILABLE", `the journal of shard ${shard} could not be read to its end`);
    } else await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return count;
}

async function decode(
  { bus, skip }: ReadCommits,
  message: { subject: string; seq: number; data: Uint8Array },
): Promise<StoredCommit | null> {
  try {
    return await bus.journal.decodeCommit(message.subject, message.seq, message.data);
  } catch (error) {
    skip(message.seq, error);
    return null;
  }
}
