// The body of a Messages request, with its cache markers. Pure.
import { type ProviderCall, prepareTranscript, toolSchema } from "@flotilla/provider-kit";
import { canThinkOn, thinkingBudget } from "./thinking.ts";
import type { MessagesRequest, WireMessage, WireTool } from "./wire.ts";
import { keepsThinking, wireMessages } from "./wire-messages.ts";

/** Shorter prefixes are not worth a marker (contracts.md 12.3). */
const cacheFromChars = 4_096;
const marker = { cache_control: { type: "ephemeral" } } as const;

export function messagesRequest(
  call: Pick<ProviderCall, "request" | "model" | "names" | "maxTokens">,
  options: { readonly usesCache: boolean },
): MessagesRequest {
  const { request, model, names, maxTokens } = call;
  const usesCache = options.usesCache && model?.supports_cache !== false;
  const prepared = prepareTranscript(request.messages, {
    provider: "anthropic",
    supportsImages: model?.supports_vision !== false,
    maxIdLength: 64,
    keepsThinking,
  });
  const messages = wireMessages(prepared, names.wireName);
  const tools = toolsOf(request.tools, names.wireName);
  const system = (request.system_prompt ?? "").toWellFormed();
  const budget = canThinkOn(messages) ? thinkingBudget(request.thinking_level, model, maxTokens) : null;
  return {
    model: request.model,
    max_tokens: maxTokens,
    ...(system.trim() === "" ? {} : { system: systemOf(system, usesCache) }),
    messages: usesCache ? withAnchor(messages) : messages,
    ...(tools.length === 0 ? {} : { tools: usesCache ? withLastMarked(tools) : tools }),
    ...(budget === null ? {} : { thinking: { type: "enabled", budget_tokens: budget } }),
    stream: true,
  };
}

function toolsOf(tools: ProviderCall["request"]["tools"], wireName: (id: string) => string): WireTool[] {
  const wire = tools.map((tool) => ({
    name: wireName(tool.name),
    ...(tool.description === "" ? {} : { description: tool.description }),
    input_schema: toolSchema(tool.parameters),
  }));
  return [...new Map(wire.map((tool) => [tool.name, tool])).values()];
}

function systemOf(system: string, usesCache: boolean): MessagesRequest["system"] & {} {
  return usesCache && system.length >= cacheFromChars ? [{ type: "text", text: system, ...marker }] : system;
}

function withLastMarked(tools: WireTool[]): WireTool[] {
  const last = tools.at(-1);
  if (last === undefined || JSON.stringify(tools).length < cacheFromChars) return tools;
  return [...tools.slice(0, -1), { ...last, ...marker }];
}

/** One anchor on the last block of the newest answer; all its calls have results. Thinking takes no marker. */
function withAnchor(messages: WireMessage[]): WireMessage[] {
  const at = messages.findLastIndex((message) => message.role === "assistant");
  const message = messages[at];
  const block = message?.content.at(-1);
  if (message === undefined || (block?.type !== "text" && block?.type !== "tool_use")) return messages;
  return messages.with(at, { ...message, content: message.content.with(-1, { ...block, ...marker }) });
}
