// Messages of a transcript as lines of text.
import type { AgentMessage, ContentBlock } from "@flotilla/contracts";
import { brief } from "./table.ts";

export function messageLines(message: AgentMessage): string[] {
  switch (message.role) {
    case "user":
      return [`you: ${textIn(message.content)}`];
    case "assistant":
      return assistantLines(message);
    case "function_result":
      return [`  ${message.is_error ? "✗" : "✓"} ${message.function_id}: ${brief(textIn(message.content), 200)}`];
    case "custom":
      return [`(${message.custom_type}) ${message.display ?? textIn(message.content)}`];
    default:
      return message satisfies never;
  }
}

function assistantLines(message: AgentMessage & { role: "assistant" }): string[] {
  const lines = message.content.flatMap((block) => blockLines(block));
  const head = `${message.model}:`;
  if (message.stop_reason === "error") return [head, ...lines, `! ${message.error_message ?? "the model call failed"}`];
  if (message.stop_reason === "aborted") return [head, ...lines, "! aborted"];
  return [head, ...lines];
}

function blockLines(block: ContentBlock): string[] {
  if (block.type === "text") return [block.text];
  if (block.type === "function_call")
    return [`  → ${block.function_id} ${brief(JSON.stringify(block.arguments), 200)}`];
  return [];
}

export function textIn(content: readonly ContentBlock[]): string {
  return content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}
