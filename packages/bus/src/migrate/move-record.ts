// The note of a move to another number of shards, in the settings: while it is there no worker may start.
import { streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamManager } from "@nats-io/jetstream";

export const migrateCommand = "flotilla migrate-shards --to";

export interface MoveRecord {
  readonly from: number;
  readonly to: number;
  /** Every sequence that a moved message gets is above this: above all that clients have seen of it. */
  readonly floor: number;
}

/** As the stream's leader has it; null when no move is open. */
export async function readMove(jsm: JetStreamManager): Promise<MoveRecord | null> {
  const query = { last_by_subj: subjects.settingShardMove };
  const found = await jsm.streams.getMessage(streamNames.settings, query);
  return found === null ? null : found.json<MoveRecord>();
}

/** For whoever is about to use the journal: half of a moved session may be in each of two shards. */
export async function refuseUnfinishedMove(jsm: JetStreamManager): Promise<void> {
  const query = { last_by_subj: subjects.settingShardMove };
  const found = await jsm.direct.getMessage(streamNames.settings, query);
  if (found === null) return;
  const { from, to } = found.json<MoveRecord>();
  throw new FlotillaError(
    "STREAM_MISMATCH",
    `a move from ${from} to ${to} turn-step shards has begun and not ended; end it with \`${migrateCommand} ${to}\``,
  );
}
