// Every stream, consumer and bucket of the fleet, declared once (commit-design.md, streams).
//
// D1 In TURN_STEP nothing may be scheduled, rolled up or expired, and nothing deleted: any of them would let a publisher of
//    one subject write to, or wipe, all others.
import { bucketNames, consumerNames, streamNames, subjects } from "@flotilla/contracts";
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";

export interface StreamsOptions {
  /** Number of turn-step streams; stored at first start, another number is refused. @default 1 */
  readonly shards?: number;
  /** @default 1 */
  readonly replicas?: number;
  /** Nothing on disk, everything lost with the server: for throw-away fleets only. @default false */
  readonly memory?: boolean;
}

export type DeclaredStream = Partial<StreamConfig> & { name: string; subjects: string[] };
export type DeclaredConsumer = Partial<ConsumerConfig> & { durable_name: string };

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export function declaredStreams(options: StreamsOptions = {}): DeclaredStream[] {
  const common = {
    retention: RetentionPolicy.Limits,
    storage: options.memory === true ? StorageType.Memory : StorageType.File,
    num_replicas: options.replicas ?? 1,
    discard: DiscardPolicy.Old,
    allow_direct: true,
    allow_rollup_hdrs: false,
    deny_delete: false,
    allow_msg_schedules: false,
    allow_msg_ttl: false,
  };
  const keyed = { ...common, max_msgs_per_subject: 1, allow_msg_ttl: true };
  return [
    { ...keyed, name: streamNames.settings, subjects: ["$KV.SETTINGS.>"] },
    ...turnStepStreams(common, options.shards ?? 1),
    {
      ...keyed,
      name: streamNames.registry,
      subjects: [subjects.registryAll],
      republish: { src: subjects.registryAll, dest: subjects.liveRegistry },
    },
    { ...keyed, name: streamNames.outcomes, subjects: ["$KV.OUTCOMES.>"] },
    { ...common, name: streamNames.turnDelta, subjects: ["delta.>"], max_age: nanos(hourMs) },
    // Schedules force rollups; only the orchestrator may publish here.
    {
      ...common,
      name: streamNames.timer,
      subjects: ["timer.>", "fired.>"],
      allow_msg_schedules: true,
      allow_rollup_hdrs: true,
      allow_msg_ttl: true,
    },
    { ...common, name: streamNames.audit, subjects: ["audit.>"], deny_delete: true },
    { ...common, name: streamNames.dead, subjects: ["dead.>"] },
    { ...common, name: streamNames.demoEffects, subjects: ["demo-effects.>"] },
    { ...common, name: streamNames.scriptedCalls, subjects: ["scripted-calls.>"] },
    bucketStream(common, bucketNames.blob),
    // On disk too: a single server forgets a memory stream altogether when it restarts, and no worker may create one.
    { ...bucketStream(common, bucketNames.request), max_age: nanos(10 * minuteMs) },
  ];
}

function turnStepStreams(common: Partial<StreamConfig>, shards: number): DeclaredStream[] {
  return Array.from({ length: shards }, (_, shard) => ({
    ...common,
    name: streamNames.turnStep(shard),
    subjects: [subjects.turnStepStream(shard)],
    discard: DiscardPolicy.New,
    deny_delete: true,
    republish: { src: "turn.>", dest: "live.turn.>" },
  }));
}

/** The layout of an object store bucket, without the rollups that would let any writer wipe it. */
function bucketStream(common: Partial<StreamConfig>, bucket: string): DeclaredStream {
  const name = `OBJ_${bucket}`;
  return { ...common, name, subjects: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`], discard: DiscardPolicy.New };
}

export function declaredConsumers(shards: number): { stream: string; config: DeclaredConsumer }[] {
  const base = { ack_policy: AckPolicy.Explicit, deliver_policy: DeliverPolicy.All, max_deliver: -1 };
  const turnStep = (shard: number): DeclaredConsumer => ({
    ...base,
    durable_name: consumerNames.turnStep,
    filter_subjects: subjects.turnStepFilters(shard),
    ack_wait: nanos(2_000),
    max_ack_pending: 50_000,
  });
  const projector = (shard: number): DeclaredConsumer => ({
    ...base,
    durable_name: consumerNames.projector,
    filter_subjects: [subjects.turnStepCommits(shard)],
    ack_wait: nanos(10_000),
    max_ack_pending: 5_000,
  });
  const timerFire: DeclaredConsumer = {
    ...base,
    durable_name: consumerNames.timerFire,
    filter_subjects: ["fired.>"],
    ack_wait: nanos(5_000),
    max_ack_pending: 5_000,
  };
  const perShard = Array.from({ length: shards }, (_, shard) =>
    [turnStep(shard), projector(shard)].map((config) => ({ stream: streamNames.turnStep(shard), config })),
  );
  return [...perShard.flat(), { stream: streamNames.timer, config: timerFire }];
}
