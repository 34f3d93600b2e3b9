// Bodies, parameters and answers of the HTTP API. Unknown fields of a body are refused: a typo is an error.
import {
  FunctionId,
  Id,
  MessageInput,
  PendingApproval,
  RunStartRequest,
  RunStartResult,
  turnStates,
  Usage,
} from "@flotilla/contracts";
import { z } from "zod";

export const SessionParams = z.object({ sid: Id });
export const CallParams = z.object({ sid: Id, call_id: Id });
export const InboxParams = z.object({ sid: Id, name: z.enum(["steering", "followup"]) });

export const TurnBody = RunStartRequest.omit({ session_id: true, fallback: true })
  .extend({ fallback: z.array(z.strictObject({ provider: z.string(), model: z.string() })).optional() })
  .strict()
  .superRefine((body, context) => {
    if (body.text !== undefined && body.messages !== undefined) {
      context.addIssue({ code: "custom", path: ["text"], message: "give either text or messages, not both" });
    } else if (body.text === undefined && body.messages === undefined) {
      context.addIssue({ code: "custom", path: ["text"], message: "text or messages is needed" });
    } else if (body.text === "" || body.messages?.length === 0) {
      const field = body.text === "" ? "text" : "messages";
      context.addIssue({ code: "custom", path: [field], message: "must not be empty" });
    }
  })
  .meta({ id: "TurnRequest" });

export const AbortBody = z
  .strictObject({ reason: z.string().nullish() })
  .nullish()
  .transform((body) => body ?? {});
export const InboxBody = z.strictObject({ message_id: Id.optional(), messages: z.array(MessageInput).min(1) });
export const DecisionBody = z.strictObject({
  decision: z.enum(["allow", "deny"]),
  args_digest: z.string().min(1),
  reason: z.string().nullish(),
});
export const TriggerBody = z.strictObject({
  function_id: FunctionId.default("run::start"),
  session_id: Id.optional(),
  message_id: Id.optional(),
  payload: z.record(z.string(), z.unknown()).default({}),
});

const wholeNumber = (min: number, max: number, fallback: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .default(fallback);
export const PageQuery = z.object({ limit: wholeNumber(1, 1000, 50), offset: wholeNumber(0, 1e9, 0) });
export const ApprovalsQuery = z.object({ session_id: Id.optional() });
export const EventsQuery = z.object({ last_event_id: z.string().optional() });

export const Accepted = RunStartResult.meta({ id: "Accepted" });
export const InboxAccepted = z.object({
  session_id: z.string(),
  message_id: z.string(),
  turn_id: z.string(),
  accepted: z.literal(true),
  position: z.string(),
});
export const Aborted = z.object({ session_id: z.string(), aborted: z.boolean(), state: z.string().nullable() });
export const Session = z
  .object({
    session_id: z.string(),
    workspace: z.string(),
    state: z.enum(turnStates),
    turn_id: z.string(),
    turn_count: z.number(),
    awaiting_approval: z.array(z.record(z.string(), z.unknown())),
    error: z.record(z.string(), z.unknown()).optional(),
    usage: Usage,
    cost_usd: z.number(),
    updated_at: z.number(),
  })
  .loose()
  .meta({ id: "Session" });
export const SessionPage = z.object({ sessions: z.array(z.record(z.string(), z.unknown())), total: z.number() });
export const Messages = z.object({
  messages: z.array(z.object({ entry_id: z.string(), message: z.record(z.string(), z.unknown()) })),
});
export const Approvals = z.object({ approvals: z.array(PendingApproval) });
export const Decided = z.object({ ok: z.literal(true) });
export const Triggered = z.object({
  status_code: z.number(),
  headers: z.record(z.string(), z.string()),
  body: z.unknown(),
});
export const Workers = z.object({ workers: z.array(z.record(z.string(), z.unknown())) });
export const Functions = z.object({ functions: z.array(z.record(z.string(), z.unknown())) });
export const Ready = z.object({
  status: z.enum(["ready", "degraded", "unavailable"]),
  checks: z.record(z.string(), z.string()),
});
export const Alive = z.object({ status: z.literal("alive") });
