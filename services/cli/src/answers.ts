// The front door's answers, as far as the CLI reads them. Unknown fields pass; a foreign answer is refused.
import { AgentMessage } from "@flotilla/contracts";
import { z } from "zod";

export const Sessions = z.object({
  sessions: z.array(
    z.looseObject({
      session_id: z.string(),
      state: z.string(),
      updated_at: z.number(),
      turns: z.number().optional(),
      last_message_summary: z.string().nullish(),
      cost_usd: z.number().optional(),
    }),
  ),
  total: z.number(),
});

export const Session = z.looseObject({
  session_id: z.string(),
  state: z.string(),
  turn_id: z.string(),
  cost_usd: z.number().optional(),
  awaiting_approval: z.array(z.looseObject({ function_call_id: z.string(), function_id: z.string() })).default([]),
  error: z.looseObject({ code: z.string().optional(), message: z.string().optional() }).nullish(),
});

export const Messages = z.object({
  messages: z.array(z.object({ entry_id: z.string(), message: AgentMessage })),
});

export const Approvals = z.object({
  approvals: z.array(
    z.looseObject({
      session_id: z.string(),
      function_call_id: z.string(),
      function_id: z.string(),
      args: z.unknown(),
      args_digest: z.string(),
      reason: z.string().nullish(),
    }),
  ),
});

export const Accepted = z.looseObject({ session_id: z.string(), turn_id: z.string(), position: z.string() });
export const Aborted = z.looseObject({ aborted: z.boolean(), state: z.string().nullable() });
export const Triggered = z.looseObject({ status_code: z.number(), body: z.unknown() });

export const Workers = z.object({
  workers: z.array(
    z.looseObject({
      worker: z.string(),
      version: z.string(),
      priority: z.number(),
      live: z.boolean(),
      instances: z.array(z.unknown()),
      functions: z.array(z.string()),
    }),
  ),
});

export const Functions = z.object({
  functions: z.array(
    z.looseObject({
      id: z.string(),
      worker: z.string(),
      version: z.string(),
      live: z.boolean(),
      instances: z.number(),
      replay: z.string(),
      description: z.string(),
    }),
  ),
});
