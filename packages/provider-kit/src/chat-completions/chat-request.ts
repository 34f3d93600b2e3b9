// The body of a Chat Completions request. Pure.
import type { WireImage } from "../images.ts";
import type { ProviderCall } from "../provider-call.ts";
import { toolSchema } from "../tool-schema.ts";
import { type PreparedAssistant, type PreparedPart, type PreparedResult, prepareTranscript } from "../transcript.ts";
import type { ChatDialect } from "./dialect.ts";

type ChatPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };
export interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string | ChatPart[] | null;
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

export function chatRequest(call: ProviderCall, dialect: ChatDialect): Record<string, unknown> {
  const { request } = call;
  const messages = chatMessages(call, dialect);
  const tools = request.tools.map((tool) => ({
    type: "function",
    function: {
      name: call.names.wireName(tool.name),
      ...(tool.description === "" ? {} : { description: tool.description.slice(0, dialect.maxDescriptionChars) }),
      parameters: toolSchema(tool.parameters),
    },
  }));
  const unique = [...new Map(tools.map((tool) => [tool.function.name, tool])).values()];
  return {
    model: request.model,
    messages,
    ...(unique.length === 0 ? {} : { tools: unique }),
    [dialect.maxTokensField]: call.maxTokens,
    stream: true,
    stream_options: { include_usage: true },
    ...dialect.extraFields?.(call),
  };
}

function chatMessages(call: ProviderCall, dialect: ChatDialect): ChatMessage[] {
  const { request, model, names } = call;
  const system = (request.system_prompt ?? "").toWellFormed();
  const prepared = prepareTranscript(request.messages, {
    provider: dialect.provider,
    supportsImages: model?.supports_vision !== false,
    maxIdLength: dialect.maxIdLength ?? 64,
  });
  const start: ChatMessage[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
  return prepared.reduce<ChatMessage[]>((messages, message) => {
    if (message.role === "user") messages.push({ role: "user", content: userContent(message.content) });
    else messages.push(assistantMessage(message, names.wireName), ...resultMessages(message.results));
    return messages;
  }, start);
}

function userContent(parts: readonly PreparedPart[]): string | ChatPart[] {
  if (parts.every((part) => part.type === "text")) return parts.map((part) => part.text).join("\n");
  return parts.map(chatPart);
}

function chatPart(part: PreparedPart): ChatPart {
  return part.type === "text" ? { type: "text", text: part.text } : imagePart(part);
}

function imagePart(image: WireImage): ChatPart {
  return { type: "image_url", image_url: { url: `data:${image.mime};base64,${image.data}` } };
}

function assistantMessage(message: PreparedAssistant, wireName: (id: string) => string): ChatMessage {
  const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  const calls = message.content.flatMap((block) =>
    block.type === "function_call"
      ? [
          {
            id: block.wireId,
            type: "function" as const,
            function: { name: wireName(block.functionId), arguments: argumentsText(block.arguments) },
          },
        ]
      : [],
  );
  return {
    role: "assistant",
    content: text === "" ? null : text,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** Always a JSON document; arguments that the model wrote wrong are not sent back, its result says what was wrong. */
function argumentsText(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : "{}";
}

/** Tool messages hold text only: images of results follow in a user message, after the last result. */
function resultMessages(results: readonly PreparedResult[]): ChatMessage[] {
  const tools = results.map(
    (result): ChatMessage => ({ role: "tool", tool_call_id: result.wireId, content: result.text }),
  );
  const images = results.flatMap((result): ChatPart[] =>
    result.images.length === 0
      ? []
      : [{ type: "text", text: `Images of the result of ${result.functionId}:` }, ...result.images.map(chatPart)],
  );
  return images.length === 0 ? tools : [...tools, { role: "user", content: images }];
}
