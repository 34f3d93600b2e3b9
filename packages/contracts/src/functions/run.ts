// Functions of turn-orchestrator and the request that starts a turn (wire.md 2).
import { z } from "zod";
import { defineFunction } from "../define.ts";
import { FunctionId, Id } from "../ids.ts";
import { MessageInput } from "../messages.ts";
import { ThinkingLevel } from "../models.ts";

export const OnBusy = z.enum(["reject", "queue", "steer", "interrupt"]);

/** Function ids that a run offers to its model; `*` stands for any run of characters. */
const FunctionPattern = z
  .string()
  .max(400)
  .regex(/^[A-Za-z0-9_:*-]+$/, "must be a function id, which may hold *");

export const RunStartRequest = z.object({
  session_id: Id,
  message_id: Id.optional(),
  text: z.string().optional(),
  messages: z.array(MessageInput).optional(),
  provider: z.string().optional(),
  model: z.string().optional(),
  mode: z.enum(["plan", "ask", "agent"]).nullish(),
  system_prompt: z.string().nullish(),
  functions: z.array(FunctionPattern).max(1_000).optional(),
  max_turns: z.number().int().positive().nullish(),
  on_busy: OnBusy.default("reject"),
  fallback: z.array(z.object({ provider: z.string(), model: z.string() })).default([]),
  approval_ttl_ms: z.number().int().positive().optional(),
  thinking_level: ThinkingLevel.nullish(),
  workspace: Id.optional(),
});
export type RunStartRequest = z.input<typeof RunStartRequest>;

export const RunStartResult = z.object({
  session_id: z.string(),
  turn_id: z.string(),
  message_id: z.string(),
  accepted: z.literal(true),
  /** A journal position that may be used as `Last-Event-ID`. */
  position: z.string(),
});
export type RunStartResult = z.infer<typeof RunStartResult>;

export const runStart = defineFunction({
  id: "run::start",
  description: "Accepts a turn: answers once the input is durable (I1). Idempotent by message_id.",
  request: RunStartRequest,
  response: RunStartResult,
  timeoutMs: 15_000,
});

export const RunAbortRequest = z.object({ session_id: Id, reason: z.string().nullish(), workspace: Id.optional() });
export const RunAbortResult = z.object({ session_id: z.string(), aborted: z.boolean(), state: z.string().nullable() });
export const runAbort = defineFunction({
  id: "run::abort",
  description: "Cancels the running turn: reaches its model call and tool calls, answers after the turn has ended.",
  request: RunAbortRequest,
  response: RunAbortResult,
  timeoutMs: 15_000,
});

export const turnGetState = defineFunction({
  id: "turn::get_state",
  description: "The state of a session's newest turn, or null for an unknown session.",
  request: z.object({ session_id: Id }),
  response: z.unknown(),
});

export const agentTrigger = defineFunction({
  id: "agent::trigger",
  description: "Runs one function through the same gate as a turn's calls; an approval is answered, not waited for.",
  request: z.object({
    session_id: Id.optional(),
    function: FunctionId,
    payload: z.record(z.string(), z.unknown()).default({}),
  }),
  response: z.object({ content: z.array(z.unknown()), details: z.unknown(), terminate: z.boolean().optional() }),
  replay: "never",
  timeoutMs: 60_000,
});
