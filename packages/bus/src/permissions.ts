// What each worker's bus user may publish and subscribe, as data: deny by default, the least that its job needs.
//
// S1 Only the orchestrator may write commits and timers; each input kind only by its doors (commit-design, streams).
// S2 Only providers may ask for credentials (I13).
// S3 A worker writes only its own registry entries and outcome records, and serves only its own functions.
// S4 Nobody but the operator may create a stream or consumer, or purge: a consumer can deliver to any subject.
import { bucketNames, consumerNames, type InputKind, streamNames, subjects } from "@flotilla/contracts";

export interface Permissions {
  readonly publish: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly subscribe: { readonly allow: readonly string[] };
}

interface Needs {
  /** Functions it calls, as `namespace.name`, wildcards allowed. */
  readonly calls?: readonly string[];
  readonly inputs?: readonly InputKind[];
  readonly readsJournal?: boolean;
  /** Streams it reads, by direct get or from the leader. */
  readonly reads?: readonly string[];
  readonly consumers?: readonly string[];
  readonly publish?: readonly string[];
  readonly deny?: readonly string[];
  readonly subscribe?: readonly string[];
}

const getToken = "fn.*.auth.get_token";
const provider: Needs = { calls: ["auth.get_token", "models.get"], publish: ["tokens.*", "delta.*.*"] };

const approvalGate: Needs = { inputs: ["approval", "vote"], readsJournal: true };

const needsByWorker: Readonly<Record<string, Needs>> = {
  "turn-orchestrator": {
    readsJournal: true,
    reads: [streamNames.turnDelta],
    consumers: [consumerNames.turnStep, consumerNames.timerFire],
    publish: [
      "fn.>",
      "turn.*.*.in.*.*",
      "turn.*.*.c.*",
      "cancel.>",
      "timer.*.*",
      "$KV.OUTCOMES.>",
      `$JS.API.DIRECT.GET.${streamNames.outcomes}.>`,
    ],
    deny: [getToken],
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
      // Pushes to browsers that have subscribed.
      "ui.session.event.*",
      "ui.sessions.changed.*",
    ],
    inputs: ["start", "steering", "followup", "abort"],
    readsJournal: true,
    reads: [streamNames.turnDelta],
    subscribe: ["tokens.*", "delta.*.*"],
  },
  session: {
    inputs: ["append", "drain", "steering", "followup"],
    readsJournal: true,
    consumers: [consumerNames.projector],
  },
  "approval-gate": approvalGate,
  demo: { reads: [streamNames.demoEffects], publish: ["demo-effects.*", "progress.*"] },
  "provider-scripted": {
    ...provider,
    reads: [streamNames.scriptedCalls],
    publish: [...(provider.publish ?? []), "scripted-calls.*"],
  },
};

/** A swap, named after what it replaces (contracts, grants), needs what that needs. */
const needsByPrefix: Readonly<Record<string, Needs>> = { "provider-": provider, "approval-": approvalGate };

function needsOf(worker: string): Needs {
  if (Object.hasOwn(needsByWorker, worker)) return needsByWorker[worker] ?? {};
  const prefix = Object.keys(needsByPrefix).find((start) => worker.startsWith(start));
  return prefix === undefined ? {} : (needsByPrefix[prefix] ?? {});
}

/** The lists of a worker's user; a worker not named here gets what every worker needs and nothing else. */
export function permissionsOf(worker: string, options: { shards: number }): Permissions {
  const needs = needsOf(worker);
  const journal = Array.from({ length: options.shards }, (_, shard) => streamNames.turnStep(shard));
  const reads = [...(needs.readsJournal === true ? journal : []), ...(needs.reads ?? [])];
  return {
    publish: {
      allow: [
        ...everyWorkerPublishes(worker),
        ...journal.map((stream) => `$JS.API.STREAM.INFO.${stream}`),
        ...(needs.calls ?? []).map((call) => `fn.*.${call}`),
        ...(needs.inputs ?? []).map((kind) => `turn.*.*.in.${kind}.*`),
        ...reads.flatMap(readStream),
        ...(needs.consumers ?? []).flatMap(useConsumer),
        ...(needs.publish ?? []),
      ],
      deny: needs.deny ?? [],
    },
    subscribe: {
      allow: [
        ...everyWorkerSubscribes(worker),
        ...(needs.readsJournal === true ? ["live.turn.>"] : []),
        ...(needs.subscribe ?? []),
      ],
    },
  };
}

function everyWorkerPublishes(worker: string): string[] {
  return [
    subjects.registryWorker(worker),
    `$KV.REGISTRY.inst.${worker}.*`,
    `$KV.OUTCOMES.${worker}.>`,
    ...directGet(streamNames.registry),
    `$JS.API.DIRECT.GET.${streamNames.outcomes}.$KV.OUTCOMES.${worker}.>`,
    // From the leader, for which no subject can be named.
    `$JS.API.STREAM.MSG.GET.${streamNames.outcomes}`,
    `$JS.API.DIRECT.GET.${streamNames.settings}.$KV.SETTINGS.>`,
    "inst.*",
    subjects.audit(worker),
    subjects.dead(worker),
    ...Object.values(bucketNames).flatMap((bucket) => [
      `$O.${bucket}.C.*`,
      `$O.${bucket}.M.*`,
      ...readStream(`OBJ_${bucket}`),
    ]),
  ];
}

function everyWorkerSubscribes(worker: string): string[] {
  const discovery = (["PING", "INFO", "STATS"] as const).flatMap((verb) => [
    subjects.service(verb),
    subjects.service(verb, worker),
    subjects.service(verb, worker, "*"),
  ]);
  return [
    `_INBOX_${worker}.>`,
    subjects.callsOf(worker),
    subjects.cancelsOf(worker),
    "inst.*",
    ...discovery,
    subjects.liveRegistry,
  ];
}

function directGet(stream: string): string[] {
  return [`$JS.API.DIRECT.GET.${stream}`, `$JS.API.DIRECT.GET.${stream}.>`];
}

function readStream(stream: string): string[] {
  return [...directGet(stream), `$JS.API.STREAM.MSG.GET.${stream}`];
}

/** Taking and acknowledging messages of a consumer that exists. */
function useConsumer(consumer: string): string[] {
  return [`$JS.API.CONSUMER.INFO.*.${consumer}`, `$JS.API.CONSUMER.MSG.NEXT.*.${consumer}`, `$JS.ACK.*.${consumer}.>`];
}
