// Dollars at the edge: inside, money is integer micro-dollars (wire.md 7).
import type { AgentMessage, Usage } from "@flotilla/contracts";

export function costUsd(usage: Usage | null | undefined): number {
  return (usage?.cost_microusd ?? 0) / 1_000_000;
}

export function usageAtEdge(usage: Usage): Usage {
  return usage.cost_microusd === undefined ? usage : { ...usage, cost_usd: costUsd(usage) };
}

export function messageAtEdge(message: AgentMessage): AgentMessage {
  if (message.role !== "assistant" || message.usage == null) return message;
  return { ...message, usage: usageAtEdge(message.usage) };
}
