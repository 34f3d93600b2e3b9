// The Messages API as far as it is used.
export interface CacheControl {
  readonly type: "ephemeral";
}
export type WireText = { type: "text"; text: string; cache_control?: CacheControl };
export type WireImageBlock = {
  type: "image";
  source: { type: "base64"; media_type: string; data: string };
};
export type WireBlock =
  | WireText
  | WireImageBlock
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "redacted_thinking"; data: string }
  | { type: "tool_use"; id: string; name: string; input: Record<string, unknown>; cache_control?: CacheControl }
  | { type: "tool_result"; tool_use_id: string; content: (WireText | WireImageBlock)[]; is_error?: true };
export interface WireMessage {
  role: "user" | "assistant";
  content: WireBlock[];
}
export interface WireTool {
  name: string;
  description?: string;
  input_schema: Record<string, unknown>;
  cache_control?: CacheControl;
}
export interface MessagesRequest {
  model: string;
  max_tokens: number;
  system?: string | WireText[];
  messages: WireMessage[];
  tools?: WireTool[];
  thinking?: { type: "enabled"; budget_tokens: number };
  stream: true;
}
