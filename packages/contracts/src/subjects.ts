// Every subject, stream and header name of the bus. Nothing else in the product may build one.
import { FlotillaError } from "@flotilla/errors";
import { functionIdPattern, idPattern } from "./ids.ts";

export const headerNames = {
  caller: "Fl-Caller",
  workspace: "Fl-Workspace",
  timeoutMs: "Fl-Timeout-Ms",
  digest: "Fl-Digest",
  idempotencyKey: "Fl-Idempotency-Key",
  epoch: "Fl-Epoch",
  attempt: "Fl-Attempt",
  /** Revision of a dead `running` record that this request may replace. */
  reclaim: "Fl-Reclaim",
  /** Name of the body in the request store, when it is too large for a message. */
  bodyRef: "Fl-Body-Ref",
  errorCode: "Nats-Service-Error-Code",
  errorMessage: "Nats-Service-Error",
} as const;

export const streamNames = {
  registry: "KV_REGISTRY",
  outcomes: "KV_OUTCOMES",
  turnDelta: "TURN_DELTA",
  timer: "TIMER",
  audit: "AUDIT",
  dead: "DEAD",
  demoEffects: "DEMO_EFFECTS",
  scriptedCalls: "SCRIPTED_CALLS",
  settings: "KV_SETTINGS",
  turnStep: (shard: number): string => `TURN_STEP_${shard}`,
} as const;

export const bucketNames = { blob: "BLOB", request: "REQUEST" } as const;

export const consumerNames = { turnStep: "turn-step", timerFire: "timer-fire", projector: "projector" } as const;

export type InputKind =
  | "start"
  | "steering"
  | "followup"
  | "abort"
  | "approval"
  | "vote"
  | "append"
  | "drain"
  | "timer"
  | "wake"
  | "child";

export type CommitKind = "step" | "run" | "idle";

function token(value: string, what: string): string {
  if (!idPattern.test(value)) {
    throw new FlotillaError("INVALID_INPUT", `${what} must be 1 to 64 characters of A-Z a-z 0-9 _ -`, { field: what });
  }
  return value;
}

export const subjects = {
  /** `policy::check_permissions` of worker `policy` is `fn.policy.policy.check_permissions`. */
  call(worker: string, functionId: string): string {
    if (!functionIdPattern.test(functionId)) {
      throw new FlotillaError("INVALID_INPUT", "function_id must look like namespace::name", { field: "function_id" });
    }
    return `fn.${token(worker, "worker")}.${functionId.split("::").join(".")}`;
  },
  callsOf: (worker: string): string => `fn.${worker}.>`,

  input: (shard: number, sessionId: string, kind: InputKind, id: string): string =>
    `turn.${shard}.${token(sessionId, "session_id")}.in.${kind}.${token(id, "message_id")}`,
  inputsOf: (shard: number, sessionId: string): string => `turn.${shard}.${token(sessionId, "session_id")}.in.>`,
  commit: (shard: number, sessionId: string, kind: CommitKind): string =>
    `turn.${shard}.${token(sessionId, "session_id")}.c.${kind}`,
  commitsOf: (shard: number, sessionId: string): string => `turn.${shard}.${token(sessionId, "session_id")}.c.*`,
  session: (shard: number, sessionId: string): string => `turn.${shard}.${token(sessionId, "session_id")}.>`,
  turnStepStream: (shard: number): string => `turn.${shard}.>`,
  turnStepFilters: (shard: number): string[] => [`turn.${shard}.*.in.>`, `turn.${shard}.*.c.step`],
  turnStepCommits: (shard: number): string => `turn.${shard}.*.c.*`,
  /** The same input or commit in another shard. */
  inShard: (subject: string, shard: number): string => `turn.${shard}.${subject.split(".").slice(2).join(".")}`,
  /** Of messages that only take up sequences of a shard; no session can have this name. */
  turnStepGap: (shard: number): string => `turn.${shard}.=gap=`,
  live: (subject: string): string => `live.${subject}`,
  /** Live notice of every commit of every session. */
  liveCommits: "live.turn.*.*.c.*",

  tokens: (sessionId: string): string => `tokens.${token(sessionId, "session_id")}`,
  delta: (sessionId: string, messageId: string): string =>
    `delta.${token(sessionId, "session_id")}.${token(messageId, "message_id")}`,
  deltasOf: (sessionId: string): string => `delta.${token(sessionId, "session_id")}.>`,

  registryWorker: (worker: string): string => `$KV.REGISTRY.worker.${token(worker, "worker")}`,
  registryInstance: (worker: string, instance: string): string =>
    `$KV.REGISTRY.inst.${token(worker, "worker")}.${token(instance, "instance")}`,
  registryAll: "$KV.REGISTRY.>",
  liveRegistry: "live.registry.>",
  outcome: (key: string): string => `$KV.OUTCOMES.${key}`,
  instance: (instance: string): string => `inst.${token(instance, "instance")}`,
  /** Cancels the call that runs under `key` at a worker. */
  cancel: (worker: string, key: string): string => `cancel.${token(worker, "worker")}.${key}`,
  cancelsOf: (worker: string): string => `cancel.${worker}.>`,

  /** Discovery of the NATS micro protocol: of all services, of one by name, of one instance. */
  service: (verb: "PING" | "INFO" | "STATS", name?: string, instance?: string): string =>
    ["$SRV", verb, name, instance].filter((part) => part !== undefined).join("."),

  timer: (sessionId: string, name: string): string => `timer.${token(sessionId, "session_id")}.${token(name, "name")}`,
  fired: (sessionId: string, name: string): string => `fired.${token(sessionId, "session_id")}.${token(name, "name")}`,
  /** How far a running function call of the session is; core only, nothing is stored. */
  progress: (sessionId: string): string => `progress.${token(sessionId, "session_id")}`,
  demoEffect: (sessionId: string): string => `demo-effects.${sessionId}`,
  scriptedCall: (sessionId: string): string => `scripted-calls.${sessionId}`,
  /** How many turn-step shards the journal has. */
  settingShards: "$KV.SETTINGS.turn_shards",
  /** A move of the sessions to another number of shards that has begun and not ended. */
  settingShardMove: "$KV.SETTINGS.turn_shards_move",
  audit: (worker: string): string => `audit.${worker}`,
  dead: (worker: string): string => `dead.${worker}`,
} as const;

export interface ParsedTurnSubject {
  readonly shard: number;
  readonly sessionId: string;
  readonly part:
    | { readonly kind: "input"; readonly input: InputKind; readonly id: string }
    | { readonly kind: "commit"; readonly commit: CommitKind };
}

/** Reads a `turn.…` or `live.turn.…` subject; null when it is neither an input nor a commit. */
export function parseTurnSubject(subject: string): ParsedTurnSubject | null {
  const parts = (subject.startsWith("live.") ? subject.slice(5) : subject).split(".");
  const [root, shard, sessionId, branch, kind, id] = parts;
  if (root !== "turn" || shard === undefined || sessionId === undefined || kind === undefined) return null;
  if (branch === "in" && id !== undefined) {
    return { shard: Number(shard), sessionId, part: { kind: "input", input: kind as InputKind, id } };
  }
  if (branch === "c") return { shard: Number(shard), sessionId, part: { kind: "commit", commit: kind as CommitKind } };
  return null;
}
