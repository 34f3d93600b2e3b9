// Creates the fleet's streams, and refuses to run on ones that differ from their declaration.
import { streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import {
  type ConsumerConfig,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StreamConfig,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { isWrongSequence } from "./journal-errors.ts";
import { migrateCommand, refuseUnfinishedMove } from "./migrate/move-record.ts";
import {
  type DeclaredConsumer,
  type DeclaredStream,
  declaredConsumers,
  declaredStreams,
  type StreamsOptions,
} from "./stream-declarations.ts";

/** Creates what is missing; refuses what differs (STREAM_MISMATCH). Needs the operator's login. Idempotent. */
export async function ensureStreams(nc: NatsConnection, options: StreamsOptions = {}): Promise<void> {
  const shards = options.shards ?? 1;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const declared = declaredStreams(options);
  const settings = declared.filter((stream) => stream.name === streamNames.settings);
  for (const stream of settings) await ensureStream(jsm, stream);
  await refuseUnfinishedMove(jsm);
  await storeShards(nc, shards);
  for (const stream of declared) await ensureStream(jsm, stream);
  for (const { stream, config } of declaredConsumers(shards)) await ensureConsumer(jsm, stream, config);
}

export async function ensureStream(jsm: JetStreamManager, declared: DeclaredStream): Promise<void> {
  const found = await orNull(jsm.streams.info(declared.name));
  if (found === null) await jsm.streams.add(declared);
  else refuseDifferences(declared, found.config, [...checkedFields, "storage"]);
}

/** What decides who may write what, and what may be lost, must be exactly as declared. */
const checkedFields = [
  "retention",
  "discard",
  "deny_delete",
  "allow_rollup_hdrs",
  "allow_msg_schedules",
  "allow_msg_ttl",
  "allow_direct",
  "max_msgs_per_subject",
  "max_age",
  "max_msgs",
  "max_bytes",
] as const satisfies (keyof StreamConfig)[];

function refuseDifferences(
  declared: DeclaredStream,
  actual: StreamConfig,
  fields: readonly (keyof StreamConfig)[] = checkedFields,
): void {
  const wrong: string[] = fields.filter((field) => normal(declared[field]) !== normal(actual[field]));
  if ([...declared.subjects].sort().join() !== [...actual.subjects].sort().join()) wrong.push("subjects");
  if (declared.republish?.dest !== actual.republish?.dest || declared.republish?.src !== actual.republish?.src) {
    wrong.push("republish");
  }
  if (wrong.length > 0) throw mismatch(`stream ${declared.name} differs in: ${wrong.join(", ")}`);
}

/** Absent, zero and -1 all mean "off" or "unlimited" in a stream's configuration. */
function normal(value: unknown): unknown {
  return value === undefined || value === 0 || value === -1 ? false : value;
}

export async function ensureConsumer(jsm: JetStreamManager, stream: string, declared: DeclaredConsumer): Promise<void> {
  const found = await orNull(jsm.consumers.info(stream, declared.durable_name));
  if (found === null) {
    await jsm.consumers.add(stream, declared);
    return;
  }
  for (const field of ["ack_policy", "deliver_policy"] as const) {
    if (found.config[field] === declared[field]) continue;
    throw mismatch(`consumer ${declared.durable_name} of stream ${stream} differs in: ${field}`);
  }
  if (!isUpToDate(declared, found.config)) await jsm.consumers.update(stream, declared.durable_name, declared);
}

function isUpToDate(declared: DeclaredConsumer, actual: ConsumerConfig): boolean {
  const filters = actual.filter_subjects ?? (actual.filter_subject === undefined ? [] : [actual.filter_subject]);
  return (
    actual.ack_wait === declared.ack_wait &&
    actual.max_ack_pending === declared.max_ack_pending &&
    actual.max_deliver === declared.max_deliver &&
    [...filters].sort().join() === [...(declared.filter_subjects ?? [])].sort().join()
  );
}

export const mostShards = 256;

export function requireShardNumber(shards: number, field: string): void {
  if (!Number.isInteger(shards) || shards < 1 || shards > mostShards) {
    throw new FlotillaError("CONFIG_INVALID", `${field} must be a whole number from 1 to ${mostShards}`, { field });
  }
}

async function storeShards(nc: NatsConnection, shards: number): Promise<void> {
  requireShardNumber(shards, "TURN_SHARDS");
  try {
    await jetstream(nc).publish(subjects.settingShards, String(shards), { expect: { lastSubjectSequence: 0 } });
  } catch (error) {
    if (!isWrongSequence(error)) throw error;
    const stored = await readShards(nc);
    if (stored !== shards) throw shardMismatch(stored, shards);
  }
}

/** The shard number of this journal; null before the streams exist. */
export async function readShards(nc: NatsConnection): Promise<number | null> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const found = await orNull(jsm.direct.getMessage(streamNames.settings, { last_by_subj: subjects.settingShards }));
  return found === null ? null : Number(found.string());
}

/** For workers: the shard number is the one asked for, and the journal's streams are as declared. Answers the number. */
export async function verifyStreams(nc: NatsConnection, asked?: number): Promise<number> {
  const shards = await verifyShards(nc, asked);
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const journal = declaredStreams({ shards }).filter((stream) => stream.name.startsWith("TURN_STEP_"));
  for (const declared of journal) {
    const found = await orNull(jsm.streams.info(declared.name));
    if (found === null) throw missing();
    refuseDifferences(declared, found.config);
  }
  return shards;
}

export async function verifyShards(nc: NatsConnection, asked: number | undefined): Promise<number> {
  const stored = await readShards(nc);
  if (stored === null) throw missing();
  await refuseUnfinishedMove(await jetstreamManager(nc, { checkAPI: false }));
  if (asked !== undefined && asked !== stored) throw shardMismatch(stored, asked);
  return stored;
}

/** The streams were not created yet, or the server has not loaded them yet. */
export function isMissingStreams(error: unknown): boolean {
  return error instanceof FlotillaError && error.code === "STREAM_MISMATCH" && error.details?.missing === true;
}

function missing(): FlotillaError {
  const message = "the streams do not exist yet; `flotilla up` creates them";
  return new FlotillaError("STREAM_MISMATCH", message, { details: { missing: true } });
}

function mismatch(message: string): FlotillaError {
  return new FlotillaError("STREAM_MISMATCH", message);
}

function shardMismatch(stored: number | null, asked: number): FlotillaError {
  return mismatch(
    `this journal has ${stored ?? "no"} turn-step shards, ${asked} were asked for; ` +
      `set TURN_SHARDS=${stored ?? 1}, or move the sessions with \`${migrateCommand} ${asked}\``,
  );
}

/** 503 (no responders) on a direct get: there is no such stream, or not yet. */
async function orNull<T>(reading: Promise<T | null>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof Error && /not found|no responders/i.test(error.message)) return null;
    throw error;
  }
}
