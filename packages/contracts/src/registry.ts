// What a worker tells the fleet about itself (wire.md 1), and which function a caller reaches.
import { z } from "zod";
import { FunctionId, Id } from "./ids.ts";

export const FunctionManifest = z.object({
  id: FunctionId,
  request_schema: z.record(z.string(), z.unknown()).default({}),
  response_schema: z.record(z.string(), z.unknown()).default({}),
  replay: z.enum(["never", "safe", "keyed"]).default("never"),
  timeout_ms: z.number().int().positive().default(30_000),
  execution: z.enum(["parallel", "sequential"]).default("parallel"),
  agent_visible: z.boolean().default(true),
  description: z.string().default(""),
});
export type FunctionManifest = z.infer<typeof FunctionManifest>;

export const WorkerManifest = z.object({
  worker: Id,
  version: z.string().default("0.0.0"),
  priority: z.number().default(0),
  first_registered_at: z.number().default(0),
  functions: z.array(FunctionManifest).default([]),
  /** `outcomes: true`: the worker keeps outcome records itself (I4). */
  meta: z.record(z.string(), z.unknown()).default({}),
});
export type WorkerManifest = z.infer<typeof WorkerManifest>;

export const InstanceRecord = z.object({ worker: Id, instance: Id, started_at: z.number().default(0) });
export type InstanceRecord = z.infer<typeof InstanceRecord>;

/** Which workers may offer which namespaces; `*` at the end of a name matches any suffix. A namespace not named is free. */
export const defaultGrants: Readonly<Record<string, readonly string[]>> = {
  policy: ["policy", "policy-*"],
  approval: ["approval-gate", "approval-*"],
  budget: ["llm-budget"],
  auth: ["auth-credentials"],
  run: ["turn-orchestrator"],
  turn: ["turn-orchestrator"],
  agent: ["turn-orchestrator"],
  "session-tree": ["session"],
  "session-inbox": ["session"],
  "hook-fanout": ["hook-fanout"],
  models: ["models-catalog", "models-*"],
  directory: ["directory", "skills-*"],
  harness: ["harness"],
  provider: ["provider-*"],
};

export const timings = {
  instanceTtlMs: 15_000,
  instanceRenewMs: 5_000,
  policyTimeoutMs: 5_000,
  modelTimeoutMs: 600_000,
  toolTimeoutMs: 30_000,
} as const;
