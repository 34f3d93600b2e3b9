// Every stream, consumer and bucket of the fleet, declared once; start-up refuses one that differs.
import { bucketNames, consumerNames, streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { type NatsConnection, nanos } from "@nats-io/transport-node";

export interface StreamsOptions {
  /** Number of turn-step streams; stored at first start, another number is refused. @default 1 */
  readonly shards?: number;
  /** @default 1 */
  readonly replicas?: number;
}

type Declared = Partial<StreamConfig> & { name: string; subjects: string[] };
const hour = 3600 * 1000;

export function declaredStreams(options: StreamsOptions = {}): Declared[] {
  const common = {
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    num_replicas: options.replicas ?? 1,
    allow_direct: true,
    allow_rollup_hdrs: false,
  };
  const keyed = { ...common, max_msgs_per_subject: 1, allow_msg_ttl: true, discard: DiscardPolicy.New };
  const log = { ...common, discard: DiscardPolicy.Old };
  const turnSteps = Array.from({ length: options.shards ?? 1 }, (_, shard) => ({
    ...common,
    name: streamNames.turnStep(shard),
    subjects: [subjects.turnStepStream(shard)],
    discard: DiscardPolicy.New,
    deny_delete: true,
    allow_msg_schedules: false,
    allow_msg_ttl: false,
    republish: { src: "turn.>", dest: "live.turn.>" },
  }));
  return [
    ...turnSteps,
    {
      ...keyed,
      discard: DiscardPolicy.Old,
      name: streamNames.registry,
      subjects: [subjects.registryAll],
      republish: { src: subjects.registryAll, dest: subjects.liveRegistry },
    },
    { ...keyed, discard: DiscardPolicy.Old, name: streamNames.outcomes, subjects: ["$KV.OUTCOMES.>"] },
    { ...keyed, discard: DiscardPolicy.Old, name: streamNames.settings, subjects: ["$KV.SETTINGS.>"] },
    { ...log, name: streamNames.turnDelta, subjects: ["delta.>"], max_age: nanos(hour) },
    { ...log, name: streamNames.timer, subjects: ["timer.>", "fired.>"], allow_msg_schedules: true, allow_rollup_hdrs: true },
    { ...log, name: streamNames.audit, subjects: ["audit.>"] },
    { ...log, name: streamNames.dead, subjects: ["dead.>"] },
    { ...log, name: streamNames.demoEffects, subjects: ["demo-effects.>"] },
    { ...log, name: streamNames.scriptedCalls, subjects: ["scripted-calls.>"] },
  ];
}

function declaredConsumers(shards: number): { stream: string; config: Partial<ConsumerConfig> & { durable_name: string } }[] {
  const base = { ack_policy: AckPolicy.Explicit, deliver_policy: DeliverPolicy.All, max_deliver: -1 };
  const perShard = Array.from({ length: shards }, (_, shard) => [
    {
      stream: streamNames.turnStep(shard),
      config: {
        ...base,
        durable_name: consumerNames.turnStep,
        filter_subjects: subjects.turnStepFilters(shard),
        ack_wait: nanos(2_000),
        max_ack_pending: 50_000,
      },
    },
    {
      stream: streamNames.turnStep(shard),
      config: {
        ...base,
        durable_name: consumerNames.projector,
        filter_subject: subjects.turnStepCommits(shard),
        ack_wait: nanos(10_000),
        max_ack_pending: 5_000,
      },
    },
  ]).flat();
  const timer = { ...base, durable_name: consumerNames.timerFire, filter_subject: "fired.>", ack_wait: nanos(5_000), max_ack_pending: 1_000 };
  return [...perShard, { stream: streamNames.timer, config: timer }];
}

/** Creates what is missing; refuses what differs (STREAM_MISMATCH). Needs the operator's login. Idempotent. */
export async function ensureStreams(nc: NatsConnection, options: StreamsOptions = {}): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (const declared of declaredStreams(options)) await ensureStream(jsm, declared);
  await ensureShards(nc, options.shards ?? 1);
  for (const { stream, config } of declaredConsumers(options.shards ?? 1)) await ensureConsumer(jsm, stream, config);
  const objects = new Objm(jetstream(nc));
  await objects.create(bucketNames.blob, { storage: StorageType.File, replicas: options.replicas ?? 1 });
  await objects.create(bucketNames.request, { storage: StorageType.Memory, ttl: nanos(600_000) });
}

async function ensureStream(jsm: JetStreamManager, declared: Declared): Promise<void> {
  const found = await infoOrNull(() => jsm.streams.info(declared.name));
  if (found === null) {
    await jsm.streams.add(declared);
    return;
  }
  refuseDifferences(declared, found.config);
}

/** What would change who may write what, or what may be lost, must be exactly as declared. */
const checkedFields = [
  "retention",
  "storage",
  "discard",
  "deny_delete",
  "allow_rollup_hdrs",
  "allow_msg_schedules",
  "allow_msg_ttl",
  "allow_direct",
  "max_msgs_per_subject",
  "max_age",
] as const;

export function refuseDifferences(declared: Declared, actual: StreamConfig): void {
  const wrong = checkedFields.filter((field) => normal(declared[field]) !== normal(actual[field]));
  const isSubjectsWrong = [...declared.subjects].sort().join() !== [...actual.subjects].sort().join();
  const isLimited = declared.name.startsWith("TURN_STEP_") && (actual.max_msgs > 0 || actual.max_bytes > 0);
  const fields = [...wrong, ...(isSubjectsWrong ? ["subjects"] : []), ...(isLimited ? ["limits"] : [])];
  if (fields.length === 0) return;
  throw new FlotillaError("STREAM_MISMATCH", `stream ${declared.name} differs in ${fields.join(", ")}; see docs/architecture.md, streams`);
}

function normal(value: unknown): unknown {
  return value === undefined || value === 0 || value === -1 ? false : value;
}

async function ensureConsumer(jsm: JetStreamManager, stream: string, config: Partial<ConsumerConfig> & { durable_name: string }): Promise<void> {
  const found = await infoOrNull(() => jsm.consumers.info(stream, config.durable_name));
  if (found === null) await jsm.consumers.add(stream, config);
  else if (found.config.ack_wait !== config.ack_wait || found.config.max_ack_pending !== config.max_ack_pending) {
    await jsm.consumers.update(stream, config.durable_name, config);
  }
}

async function infoOrNull<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Error && /not found/i.test(error.message)) return null;
    throw error;
  }
}

const shardsSubject = "$KV.SETTINGS.turn_shards";

async function ensureShards(nc: NatsConnection, shards: number): Promise<void> {
  const js = jetstream(nc);
  const stored = await readShards(nc);
  if (stored === null) {
    await js.publish(shardsSubject, String(shards));
    return;
  }
  if (stored !== shards) throw shardMismatch(stored, shards);
}

function shardMismatch(stored: number, asked: number): FlotillaError {
  return new FlotillaError(
    "STREAM_MISMATCH",
    `this journal was made with ${stored} turn-step shards, ${asked} were asked for; set TURN_SHARDS=${stored}, or move the sessions with: flotilla migrate-shards --to ${asked}`,
  );
}

/** The shard number of this journal; null before the first start. */
export async function readShards(nc: NatsConnection): Promise<number | null> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const found = await jsm.direct.getMessage(streamNames.settings, { last_by_subj: shardsSubject }).catch((error: unknown) => {
    if (error instanceof Error && /no responders|not found/i.test(error.message)) return null;
    throw error;
  });
  return found === null ? null : Number(found.string());
}

/** For workers: the streams exist and the number of shards is the one asked for. */
export async function verifyShards(nc: NatsConnection, asked: number | undefined): Promise<number> {
  const stored = await readShards(nc);
  if (stored === null) throw new FlotillaError("STREAM_MISMATCH", "the streams do not exist yet; create them with: flotilla streams");
  if (asked !== undefined && asked !== stored) throw shardMismatch(stored, asked);
  return stored;
}
