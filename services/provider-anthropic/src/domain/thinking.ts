// Thinking levels as token budgets (contracts.md 12.3). Pure.
import type { ThinkingLevel } from "@flotilla/contracts";
import type { ModelMeta } from "@flotilla/provider-kit";
import type { WireMessage } from "./wire.ts";

const leastBudget = 1_024;

/** The budget, or null when the model should not think in this call. */
export function thinkingBudget(
  level: ThinkingLevel | null | undefined,
  model: ModelMeta | null,
  maxTokens: number,
): number | null {
  const most = model?.max_output_tokens;
  if (level == null || level === "off" || most === undefined || model?.supports_thinking === false) return null;
  const known = level === "xhigh" && model?.supports_xhigh !== true ? "high" : level;
  const wanted = model?.thinking_budgets?.[known] ?? defaultBudget(known, most);
  const budget = Math.floor(Math.min(wanted, maxTokens - leastBudget));
  return budget < leastBudget ? null : budget;
}

function defaultBudget(level: Exclude<ThinkingLevel, "off">, most: number): number {
  if (level === "xhigh") return Math.min(31_999, most - 1);
  if (level === "high") return Math.min(16_000, most / 2 - 1);
  if (level === "medium") return Math.min(8_000, most / 4);
  return Math.min(4_000, most / 8);
}

/** The API refuses to think on when the newest message with calls did not begin with thinking. */
export function canThinkOn(messages: readonly WireMessage[]): boolean {
  const newest = messages.findLast((message) => message.role === "assistant");
  if (newest === undefined || !newest.content.some((block) => block.type === "tool_use")) return true;
  const first = newest.content[0]?.type;
  return first === "thinking" || first === "redacted_thinking";
}
