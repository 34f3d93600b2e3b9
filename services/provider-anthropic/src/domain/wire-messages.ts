// A prepared transcript as messages of the Messages API: roles alternate, results come first behind their calls. Pure.
import type { AssistantMessage, ContentBlock } from "@flotilla/contracts";
import type {
  PreparedAssistant,
  PreparedBlock,
  PreparedMessage,
  PreparedPart,
  PreparedResult,
} from "@flotilla/provider-kit";
import type { WireBlock, WireImageBlock, WireMessage, WireText } from "./wire.ts";

export function wireMessages(prepared: readonly PreparedMessage[], wireName: (id: string) => string): WireMessage[] {
  const messages: WireMessage[] = [];
  const add = (role: WireMessage["role"], content: WireBlock[]): void => {
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  };
  // The API wants a user to begin; a transcript that was compacted may begin with an answer.
  if (prepared[0]?.role === "assistant") add("user", [{ type: "text", text: "(the conversation so far)" }]);
  for (const message of prepared) {
    if (message.role === "user") add("user", message.content.map(partOf));
    else {
      add("assistant", assistantBlocks(message, wireName));
      add("user", message.results.map(resultOf));
      add("user", message.results.filter(hasImagesApart).flatMap(imagesOf));
    }
  }
  return withoutTrailingSpace(messages);
}

function assistantBlocks(message: PreparedAssistant, wireName: (id: string) => string): WireBlock[] {
  return message.content.map((block: PreparedBlock): WireBlock => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "function_call") {
      return { type: "tool_use", id: block.wireId, name: wireName(block.functionId), input: inputOf(block.arguments) };
    }
    if (block.redacted !== undefined) return { type: "redacted_thinking", data: block.redacted };
    return { type: "thinking", thinking: block.text, signature: block.signature ?? "" };
  });
}

/** The API takes objects only; for arguments that were none the call's result says what was wrong. */
function inputOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function resultOf(result: PreparedResult): WireBlock {
  const images = hasImagesApart(result) ? [] : result.images.map(partOf);
  const content = [{ type: "text" as const, text: result.text }, ...images];
  return { type: "tool_result", tool_use_id: result.wireId, content, ...(result.isError ? { is_error: true } : {}) };
}

/** The API takes nothing but text in the result of a failure; its images stand behind all results. */
function hasImagesApart(result: PreparedResult): boolean {
  return result.isError && result.images.length > 0;
}

function imagesOf(result: PreparedResult): WireBlock[] {
  return [{ type: "text", text: `Images of the result of ${result.functionId}:` }, ...result.images.map(partOf)];
}

function partOf(part: PreparedPart): WireText | WireImageBlock {
  if (part.type === "text") return { type: "text", text: part.text };
  return { type: "image", source: { type: "base64", media_type: part.mime, data: part.data } };
}

/** A final assistant message is a beginning to be continued, and the API refuses one that ends in white space. */
export function withoutTrailingSpace(messages: WireMessage[]): WireMessage[] {
  const last = messages.at(-1);
  const tail = last?.content.at(-1);
  if (last?.role !== "assistant" || tail?.type !== "text") return messages;
  const text = tail.text.trimEnd();
  const content = text === "" ? last.content.slice(0, -1) : [...last.content.slice(0, -1), { ...tail, text }];
  return content.length === 0 ? messages.slice(0, -1) : [...messages.slice(0, -1), { ...last, content }];
}

const otherApis = new Set(["openai", "kimi", "lmstudio", "scripted"]);
/** The form of the API's own signatures, so that a foreign one is not mistaken for it. */
const signatureForm = /^E[A-Za-z0-9+/=]{8,}$/;

/**
 * Thinking goes back unchanged with its signature, and only where it came from: to this provider, or, from another
 * name of the same API (a gateway's), when the signature has its form. Unsigned thinking is never taken.
 */
export function keepsThinking(message: AssistantMessage, block: Extract<ContentBlock, { type: "thinking" }>): boolean {
  const isSealed = block.redacted !== undefined || (block.signature ?? "") !== "";
  if (message.provider === "anthropic") return isSealed;
  return !otherApis.has(message.provider) && signatureForm.test(block.signature ?? "");
}
