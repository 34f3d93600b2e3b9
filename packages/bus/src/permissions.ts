// What each worker's bus user may publish and subscribe, as data: deny by default, the least that its job needs.
//
// S1 Only the orchestrator may write commits and timers; each input kind only by its doors (commit-design, streams).
// S2 Only providers may ask for credentials (I13).
// S3 A worker writes only its own registry entries and outcome records, and serves only its own functions.
import { bucketNames, consumerNames, type InputKind, streamNames } from "@flotilla/contracts";

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

interface Needs {
  /** Functions it calls, as `namespace.name`, wildcards allowed. */
  readonly calls?: readonly string[];
  readonly inputs?: readonly InputKind[];
  readonly readsJournal?: boolean;
  /** Streams it reads by direct get. */
  readonly reads?: readonly string[];
  readonly consumers?: readonly string[];
  readonly publish?: readonly string[];
  readonly subscribe?: readonly string[];
}

const provider: Needs = { calls: ["auth.get_token", "models.get"], publish: ["tokens.*", "delta.>"] };

const needsByWorker: Readonly<Record<string, Needs>> = {
  "turn-orchestrator": {
    readsJournal: true,
    reads: [streamNames.turnDelta],
    consumers: [consumerNames.turnStep, consumerNames.timerFire],
    publish: ["fn.>", "turn.>", "cancel.>", "timer.>", "$KV.OUTCOMES.>", `$JS.API.DIRECT.GET.${streamNames.outcomes}.>`],
  },
  harness: {
    calls: [
      "run.*",
      "turn.get_state",
      "approval.*",
      "session-tree.*",
      "session-inbox.*",
      "models.*",
      "demo.*",
      "provider.scripted.calls",
      "ui.session.event.*",
      "ui.sessions.changed.*",
    ],
    inputs: ["start", "steering", "followup", "abort"],
    readsJournal: true,
    reads: [streamNames.turnDelta],
    subscribe: ["tokens.*", "delta.>"],
  },
  session: {
    inputs: ["append", "drain", "steering", "followup"],
    readsJournal: true,
    consumers: [consumerNames.projector],
  },
  "approval-gate": { inputs: ["approval", "vote"], readsJournal: true },
  demo: { reads: [streamNames.demoEffects], publish: ["demo-effects.>"] },
  "provider-scripted": { ...provider, reads: [streamNames.scriptedCalls], publish: [...(provider.publish ?? []), "scripted-calls.>"] },
};

function needsOf(worker: string): Needs {
  return needsByWorker[worker] ?? (worker.startsWith("provider-") ? provider : {});
}

/** The allow lists of a worker's user; a worker not named here gets what every worker needs and nothing else. */
export function permissionsOf(worker: string, options: { shards: number }): Permissions {
  const needs = needsOf(worker);
  const shards = Array.from({ length: options.shards }, (_, shard) => streamNames.turnStep(shard));
  const journal = needs.readsJournal === true ? shards.flatMap((stream) => [...directGet(stream), `$JS.API.STREAM.MSG.GET.${stream}`]) : [];
  return {
    publish: [
      ...everyWorkerPublishes(worker),
      ...(needs.calls ?? []).map((call) => `fn.*.${call}`),
      ...(needs.inputs ?? []).map((kind) => `turn.*.*.in.${kind}.*`),
      ...journal,
      ...(needs.reads ?? []).flatMap(directGet),
      ...(needs.consumers ?? []).flatMap((consumer) => [
        `$JS.API.CONSUMER.INFO.*.${consumer}`,
        `$JS.API.CONSUMER.MSG.NEXT.*.${consumer}`,
        `$JS.ACK.*.${consumer}.>`,
      ]),
      ...(needs.publish ?? []),
    ],
    subscribe: [...everyWorkerSubscribes(worker), ...(needs.readsJournal === true ? ["live.turn.>"] : []), ...(needs.subscribe ?? [])],
  };
}

function everyWorkerPublishes(worker: string): string[] {
  return [
    `$KV.REGISTRY.worker.${worker}`,
    `$KV.REGISTRY.inst.${worker}.*`,
    `$KV.OUTCOMES.${worker}.>`,
    ...directGet(streamNames.registry),
    `$JS.API.DIRECT.GET.${streamNames.outcomes}.$KV.OUTCOMES.${worker}.>`,
    `$JS.API.STREAM.MSG.GET.${streamNames.outcomes}`,
    `$JS.API.DIRECT.GET.${streamNames.settings}.$KV.SETTINGS.>`,
    "$JS.API.INFO",
    "inst.*",
    `audit.${worker}`,
    `dead.${worker}`,
    ...Object.values(bucketNames).flatMap(objectBucket),
  ];
}

function everyWorkerSubscribes(worker: string): string[] {
  return [`_INBOX_${worker}.>`, `fn.${worker}.>`, `cancel.${worker}.>`, "inst.*", "$SRV.>", "live.registry.>"];
}

function directGet(stream: string): string[] {
  return [`$JS.API.DIRECT.GET.${stream}`, `$JS.API.DIRECT.GET.${stream}.>`];
}

/** Reading and adding objects; nobody may purge or delete them. */
function objectBucket(bucket: string): string[] {
  const stream = `OBJ_${bucket}`;
  return [
    `$O.${bucket}.>`,
    `$JS.API.STREAM.INFO.${stream}`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    ...directGet(stream),
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.>`,
    `$JS.API.CONSUMER.DELETE.${stream}.>`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.>`,
    `$JS.ACK.${stream}.>`,
    `$JS.FC.${stream}.>`,
  ];
}
