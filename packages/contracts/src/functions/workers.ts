// Functions of policy, approval-gate, session, models-catalog, auth-credentials, harness and the test workers.
import { z } from "zod";
import { defineFunction } from "../define.ts";
import { FunctionId, Id } from "../ids.ts";
import {
  AgentMessage,
  AssistantMessage,
  ContentBlock,
  CustomMessage,
  FunctionResultMessage,
  MessageInput,
  StopReason,
  UserMessage,
} from "../messages.ts";
import { AgentFunction, Credential, Model, ThinkingLevel } from "../models.ts";
import { RunStartRequest } from "./run.ts";

// --- policy ---------------------------------------------------------------------------------------------------------
export const PolicyVerdict = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("allow"), rule_id: z.string() }),
  z.object({
    decision: z.literal("deny"),
    rule_id: z.string(),
    rule_action: z.literal("deny"),
    matched_constraint: z.object({ field: z.string(), operator: z.string(), value: z.unknown() }).optional(),
    /** Why, for the reader of the denial; safe to show. */
    reason: z.string().optional(),
  }),
  z.object({ decision: z.literal("needs_approval"), reason: z.string().optional() }),
]);
export type PolicyVerdict = z.infer<typeof PolicyVerdict>;
export const policyCheckPermissions = defineFunction({
  id: "policy::check_permissions",
  description: "Verdict of permissions.yaml and the kernel rules on one call.",
  request: z.object({ function_id: FunctionId, args: z.record(z.string(), z.unknown()).default({}) }),
  response: PolicyVerdict,
  timeoutMs: 5_000,
});

// --- approval-gate --------------------------------------------------------------------------------------------------
export const PendingApproval = z.object({
  session_id: z.string(),
  function_call_id: z.string(),
  function_id: z.string(),
  args: z.unknown(),
  args_digest: z.string(),
  reason: z.string().optional(),
  created_at: z.number(),
  expires_at: z.number(),
});
export type PendingApproval = z.infer<typeof PendingApproval>;
export const approvalResolve = defineFunction({
  id: "approval::resolve",
  description: "Decides one parked call, bound to its id and the digest of its arguments; the first decision wins.",
  request: z.object({
    session_id: Id,
    function_call_id: Id,
    decision: z.enum(["allow", "deny"]),
    args_digest: z.string(),
    reason: z.string().nullish(),
  }),
  response: z.object({ ok: z.literal(true) }),
  timeoutMs: 10_000,
});
export const approvalList = defineFunction({
  id: "approval::list",
  description: "Pending approvals, of one session (from the journal) or of all (from the projection).",
  request: z.object({ session_id: Id.optional() }),
  response: z.object({ approvals: z.array(PendingApproval) }),
});
export const approvalGet = defineFunction({
  id: "approval::get",
  description: "One pending approval.",
  request: z.object({ session_id: Id, function_call_id: Id }),
  response: z.object({ approval: PendingApproval }),
});

// --- session --------------------------------------------------------------------------------------------------------
export const sessionCreate = defineFunction({
  id: "session-tree::create",
  description: "A fresh session id; the session exists from its first input on.",
  request: z.object({ display_name: z.string().optional(), cwd: z.string().optional() }),
  response: z.object({ session_id: z.string() }),
});
export const sessionAppend = defineFunction({
  id: "session-tree::append",
  description: "Appends one message between turns or at steering_check; answers after the commit that holds it.",
  request: z.object({
    session_id: Id,
    message_id: Id.optional(),
    parent_id: z.string().nullish(),
    message: z.union([AgentMessage, MessageInput]),
  }),
  response: z.object({ entry_id: z.string() }),
  timeoutMs: 60_000,
});
export const sessionAppendBatch = defineFunction({
  id: "session-tree::append_batch",
  description: "Appends a chain of messages in one commit.",
  request: z.object({
    session_id: Id,
    message_id: Id.optional(),
    parent_id: z.string().nullish(),
    messages: z.array(z.union([AgentMessage, MessageInput])).min(1),
  }),
  response: z.object({ entry_ids: z.array(z.string()) }),
  timeoutMs: 60_000,
});
export const sessionMessages = defineFunction({
  id: "session-tree::messages",
  description: "The transcript, root to leaf.",
  request: z.object({ session_id: Id, branch_leaf: z.string().optional() }),
  response: z.object({ messages: z.array(z.object({ entry_id: z.string(), message: AgentMessage })) }),
});
export const sessionList = defineFunction({
  id: "session-tree::list",
  description: "Sessions by time of their last change, newest first.",
  request: z.object({
    limit: z.number().int().min(1).max(1000).default(50),
    offset: z.number().int().min(0).default(0),
    order: z.enum(["asc", "desc"]).default("desc"),
    workspace: Id.optional(),
  }),
  response: z.object({ sessions: z.array(z.record(z.string(), z.unknown())), total: z.number() }),
});
export const sessionGet = defineFunction({
  id: "session-tree::get",
  description: "One session's state, counts, usage and cost.",
  request: z.object({ session_id: Id }),
  response: z.record(z.string(), z.unknown()),
});
export const sessionRebuild = defineFunction({
  id: "session-tree::rebuild",
  description: "Rebuilds the Redis projection from the journal; answers when it has caught up (I7).",
  request: z.object({}),
  response: z.object({ rebuilt: z.literal(true), sessions: z.number(), commits: z.number(), duration_ms: z.number() }),
  timeoutMs: 600_000,
});
const InboxName = z.enum(["steering", "followup"]);
export const inboxPush = defineFunction({
  id: "session-inbox::push",
  description: "Puts a message into a running turn's inbox; answers once it is durable.",
  request: z.object({
    name: InboxName,
    session_id: Id,
    message_id: Id.optional(),
    item: z.union([AgentMessage, MessageInput, z.string()]),
  }),
  response: z.object({ ok: z.literal(true), message_id: z.string() }),
});
export const inboxPeek = defineFunction({
  id: "session-inbox::peek",
  description: "What waits in an inbox.",
  request: z.object({ name: InboxName, session_id: Id }),
  response: z.object({ items: z.array(z.unknown()) }),
});
export const inboxDrain = defineFunction({
  id: "session-inbox::drain",
  description: "Takes what waits in an inbox away; answers after the commit that removed it.",
  request: z.object({ name: InboxName, session_id: Id }),
  response: z.object({ items: z.array(z.unknown()) }),
  timeoutMs: 60_000,
});

// --- models-catalog -------------------------------------------------------------------------------------------------
export const modelsList = defineFunction({
  id: "models::list",
  description: "Known models, filtered by provider and capability.",
  request: z.object({ provider: z.string().optional(), capability: z.string().optional() }),
  response: z.object({ models: z.array(Model) }),
  agentVisible: true,
});
export const modelsGet = defineFunction({
  id: "models::get",
  description: "One model, or null.",
  request: z.object({ provider: z.string(), model_id: z.string() }),
  response: Model.nullable(),
  agentVisible: true,
});
export const modelsSupports = defineFunction({
  id: "models::supports",
  description: "Whether a model has a capability; false for an unknown model or capability.",
  request: z.object({ provider: z.string(), model_id: z.string(), capability: z.string() }),
  response: z.object({ supported: z.boolean() }),
  agentVisible: true,
});

// --- auth-credentials -----------------------------------------------------------------------------------------------
export const authGetToken = defineFunction({
  id: "auth::get_token",
  description: "A provider's credential, or null. Callable by provider workers only (I13).",
  request: z.object({ provider: z.string() }),
  response: Credential.nullable(),
});
export const authStatus = defineFunction({
  id: "auth::status",
  description: "Whether a provider has a credential and where from; never the secret.",
  request: z.object({ provider: z.string() }),
  response: z.object({
    configured: z.boolean(),
    source: z.enum(["stored", "runtime", "environment", "fallback"]).optional(),
    label: z.string().optional(),
  }),
});
export const authListProviders = defineFunction({
  id: "auth::list_providers",
  description: "Providers that have a credential.",
  request: z.object({}),
  response: z.object({ providers: z.array(z.string()) }),
});

// --- providers ------------------------------------------------------------------------------------------------------
const atAnyTime = { timestamp: z.number().default(0) };
/** A message as a provider takes it: what no model reads may be left out by a direct caller. */
const TranscriptMessage = z.discriminatedUnion("role", [
  UserMessage.extend(atAnyTime),
  AssistantMessage.extend({
    ...atAnyTime,
    stop_reason: StopReason.default("end"),
    model: z.string().default(""),
    provider: z.string().default(""),
  }),
  FunctionResultMessage.extend({
    ...atAnyTime,
    details: z.unknown().default({}),
    is_error: z.boolean().default(false),
  }),
  CustomMessage.extend(atAnyTime),
]);
export const ProviderRequest = z.object({
  session_id: Id.optional(),
  turn_id: Id.optional(),
  /** Id of the message that is produced; with session_id, its frames go out on `tokens.<sid>`. */
  message_id: Id.optional(),
  model: z.string(),
  messages: z.array(TranscriptMessage),
  tools: z.array(AgentFunction).default([]),
  system_prompt: z.string().nullish(),
  thinking_level: ThinkingLevel.nullish(),
  max_tokens: z.number().int().positive().optional(),
  model_meta: Model.partial({ api: true, display_name: true }).nullish(),
});
export type ProviderRequest = z.input<typeof ProviderRequest>;
/** `streamed`: at least one frame of text or thinking went out. A failure is a message with stop_reason `error`, not a throw. */
export const ProviderReply = z.object({
  message: z.unknown(),
  streamed: z.boolean(),
  /** At least one frame of any kind went out. @default `streamed` */
  framed: z.boolean().optional(),
});
export const providerStream = (provider: string) =>
  defineFunction({
    id: `provider::${provider}::stream`,
    description: `One model call of ${provider}, streamed to the session's token subject; answers the final message.`,
    request: ProviderRequest,
    response: ProviderReply,
    replay: "never",
    timeoutMs: 600_000,
  });
export const providerComplete = (provider: string) =>
  defineFunction({
    id: `provider::${provider}::complete`,
    description: `One model call of ${provider} without streaming; answers the final message.`,
    request: ProviderRequest,
    response: ProviderReply,
    replay: "never",
    timeoutMs: 600_000,
  });
export const scriptedCalls = defineFunction({
  id: "provider::scripted::calls",
  description: "The durable log of scripted model calls: one entry per execution that started.",
  request: z.object({ session_id: Id }),
  response: z.object({
    calls: z.array(
      z.object({
        message_id: z.string(),
        block: z.number(),
        attempt: z.number(),
        idempotency_key: z.string(),
        at: z.number(),
      }),
    ),
  }),
});

// --- harness --------------------------------------------------------------------------------------------------------
export const harnessTrigger = defineFunction({
  id: "harness::trigger",
  description: "Starts a turn through the front door; answers like an HTTP response.",
  request: z.object({
    function_id: z.literal("run::start").default("run::start"),
    session_id: Id.optional(),
    message_id: Id.optional(),
    payload: RunStartRequest.partial().loose(),
  }),
  response: z.object({ status_code: z.number(), headers: z.record(z.string(), z.string()), body: z.unknown() }),
  timeoutMs: 20_000,
});
const Subscription = z.object({ browser_id: Id, session_id: Id.nullish() });
export const uiSubscribe = defineFunction({
  id: "ui::subscribe",
  description: "Pushes session events to `ui::session::event::<browser_id>`; null session = all sessions.",
  request: Subscription,
  response: z.object({ ok: z.literal(true), total_browsers: z.number() }),
});
export const uiUnsubscribe = defineFunction({
  id: "ui::unsubscribe",
  description: "Ends a subscription of ui::subscribe.",
  request: Subscription,
  response: z.object({ ok: z.literal(true), total_browsers: z.number() }),
});

// --- demo -----------------------------------------------------------------------------------------------------------
const loose = (shape: z.ZodRawShape) => z.object(shape).loose();
const demoOptions = { agentVisible: true } as const;
export const demoEcho = defineFunction({
  id: "demo::echo",
  description: "Answers the text, repeated.",
  request: loose({ text: z.unknown().optional(), repeat: z.unknown().optional() }),
  response: z.unknown(),
  replay: "safe",
  ...demoOptions,
});
export const demoLookup = defineFunction({
  id: "demo::lookup",
  description: "Looks an order up.",
  request: loose({ order: z.unknown().optional() }),
  response: z.unknown(),
  replay: "safe",
  ...demoOptions,
});
export const demoShip = defineFunction({
  id: "demo::ship",
  description: "Ships an order; repeatable with the same idempotency key. Takes `ms` after its effect record.",
  request: loose({ order: z.unknown().optional(), ms: z.unknown().optional() }),
  response: z.unknown(),
  replay: "keyed",
  timeoutMs: 300_000,
  ...demoOptions,
});
export const demoRefund = defineFunction({
  id: "demo::refund",
  description: "Refunds an order; needs a human's approval in the shipped policy.",
  request: loose({ order: z.unknown().optional(), amount: z.unknown().optional() }),
  response: z.unknown(),
  replay: "never",
  ...demoOptions,
});
export const demoSlow = defineFunction({
  id: "demo::slow",
  description: "Sleeps `ms` milliseconds; honours abort.",
  request: loose({ ms: z.unknown().optional() }),
  response: z.unknown(),
  replay: "never",
  timeoutMs: 3_600_000,
  ...demoOptions,
});
export const demoFail = defineFunction({
  id: "demo::fail",
  description: "Fails with the given code.",
  request: loose({ code: z.unknown().optional() }),
  response: z.unknown(),
  replay: "safe",
  ...demoOptions,
});
export const demoEffects = defineFunction({
  id: "demo::effects",
  description: "The durable log of what the demo functions did, oldest first.",
  request: loose({ session_id: z.unknown().optional() }),
  response: z.object({ effects: z.array(z.record(z.string(), z.unknown())) }),
  replay: "safe",
  agentVisible: false,
});

export { ContentBlock };
