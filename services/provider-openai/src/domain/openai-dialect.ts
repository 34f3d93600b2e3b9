// How this vendor's Chat Completions API differs from the others.
import type { ChatDialect } from "@flotilla/provider-kit/chat-completions";
import { reasoningEffort } from "./reasoning-effort.ts";

export function openaiDialect(options: { readonly url: string; readonly stallTimeoutMs: number }): ChatDialect {
  return {
    provider: "openai",
    maxTokensField: "max_completion_tokens",
    maxIdLength: 40,
    maxDescriptionChars: 1_024,
    extraFields: (call) => reasoningEffort(call.request.thinking_level, call.model),
    ...options,
  };
}
