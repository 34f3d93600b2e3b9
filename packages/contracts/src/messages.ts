// Content blocks and messages of a transcript (contracts.md 2.1, 2.2). Times are epoch ms.
import { z } from "zod";

export const TextBlock = z.object({ type: z.literal("text"), text: z.string() });
export const ImageBlock = z.object({ type: z.literal("image"), mime: z.string(), data: z.string() });
/** `signature` and `redacted` belong to the provider that made the block and are replayed to it unchanged. */
export const ThinkingBlock = z.object({
  type: z.literal("thinking"),
  text: z.string(),
  signature: z.string().optional(),
  redacted: z.string().optional(),
});
export const FunctionCallBlock = z.object({
  type: z.literal("function_call"),
  /** Our id `<turn>-<step>-<index>` in the transcript; the vendor's own in `provider_call_id`. */
  id: z.string(),
  function_id: z.string(),
  /** Parsed JSON; the raw text when it did not parse. */
  arguments: z.unknown(),
  provider_call_id: z.string().optional(),
});
export const ContentBlock = z.discriminatedUnion("type", [TextBlock, ImageBlock, ThinkingBlock, FunctionCallBlock]);
export type ContentBlock = z.infer<typeof ContentBlock>;
export type FunctionCallBlock = z.infer<typeof FunctionCallBlock>;

export const StopReason = z.enum(["end", "length", "function_call", "aborted", "error"]);
export type StopReason = z.infer<typeof StopReason>;
export const ErrorKind = z.enum(["auth_expired", "rate_limited", "context_overflow", "transient", "permanent"]);
export type ErrorKind = z.infer<typeof ErrorKind>;

/** Tokens: `input` without cached ones, `output` with reasoning. Money is integer micro-dollars inside (wire.md 7). */
export const Usage = z.object({
  input: z.number().optional(),
  output: z.number().optional(),
  cache_read: z.number().optional(),
  cache_write: z.number().optional(),
  cost_microusd: z.number().int().optional(),
  cost_usd: z.number().optional(),
});
export type Usage = z.infer<typeof Usage>;

export const UserMessage = z.object({
  role: z.literal("user"),
  content: z.array(ContentBlock),
  timestamp: z.number(),
});
export const AssistantMessage = z.object({
  role: z.literal("assistant"),
  content: z.array(ContentBlock),
  stop_reason: StopReason,
  error_message: z.string().nullish(),
  error_kind: ErrorKind.nullish(),
  /** How long the vendor asked us to wait, when it did. */
  retry_after_ms: z.number().optional(),
  usage: Usage.nullish(),
  model: z.string(),
  provider: z.string(),
  timestamp: z.number(),
});
export const FunctionResultMessage = z.object({
  role: z.literal("function_result"),
  function_call_id: z.string(),
  function_id: z.string(),
  content: z.array(ContentBlock),
  details: z.unknown(),
  is_error: z.boolean(),
  timestamp: z.number(),
});
/** Never sent to a provider. */
export const CustomMessage = z.object({
  role: z.literal("custom"),
  custom_type: z.string(),
  content: z.array(ContentBlock),
  display: z.string().optional(),
  details: z.unknown().optional(),
  timestamp: z.number(),
});
export const AgentMessage = z.discriminatedUnion("role", [
  UserMessage,
  AssistantMessage,
  FunctionResultMessage,
  CustomMessage,
]);
export type UserMessage = z.infer<typeof UserMessage>;
export type AssistantMessage = z.infer<typeof AssistantMessage>;
export type FunctionResultMessage = z.infer<typeof FunctionResultMessage>;
export type AgentMessage = z.infer<typeof AgentMessage>;

/** A message as a client may send it: content as text or blocks, timestamp optional. */
export const MessageInput = z
  .object({
    role: z.enum(["user", "custom"]).default("user"),
    content: z.union([z.string(), z.array(ContentBlock)]),
    custom_type: z.string().optional(),
    display: z.string().optional(),
    details: z.unknown().optional(),
    timestamp: z.number().optional(),
  })
  .meta({ description: "A user (or custom) message; content is text or content blocks" });
export type MessageInput = z.input<typeof MessageInput>;

export interface MessageWithEntryId {
  entry_id: string;
  message: AgentMessage;
}

/** What a function gave back. `terminate`: when every result of a batch has it, the turn ends. */
export interface FunctionResult {
  content: ContentBlock[];
  details: unknown;
  terminate?: boolean;
}

export interface DenialEnvelope {
  schema_version: 1;
  status: "denied";
  denied_by: "permissions" | "user" | "gate_unavailable";
  function_id: string;
  rule_id?: string;
  rule_action?: "deny";
  matched_constraint?: { field: string; operator: string; value: unknown };
  args_excerpt?: unknown;
  reason: string;
}

export function textOf(message: { content: readonly ContentBlock[] }): string {
  return message.content
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}
