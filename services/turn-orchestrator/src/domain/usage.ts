// Adding up tokens and money; money is integer micro-dollars. Pure.
import { type AssistantMessage, costMicrousd, type Model, type TurnRecord, type Usage } from "@flotilla/contracts";

/** The message's usage with its cost: the provider's own figure, or one made from the catalog's prices. */
export function pricedUsage(usage: Usage, model: Model | null): Usage {
  if (usage.cost_microusd !== undefined) return usage;
  return { ...usage, cost_microusd: costMicrousd(usage, model?.pricing) };
}

export function addUsage(total: Usage, part: Usage): Usage {
  const sum = (key: "input" | "output" | "cache_read" | "cache_write" | "cost_microusd"): number =>
    (total[key] ?? 0) + (part[key] ?? 0);
  return {
    input: sum("input"),
    output: sum("output"),
    cache_read: sum("cache_read"),
    cache_write: sum("cache_write"),
    cost_microusd: sum("cost_microusd"),
  };
}

/** Counts a model call, failed attempts too. */
export function charge(turn: TurnRecord, usage: Usage): void {
  turn.usage = addUsage(turn.usage, usage);
  turn.turn_usage = addUsage(turn.turn_usage, usage);
}

/** What a call whose answer was lost probably cost: its input, at four characters a token. */
export function estimatedUsage(payloadChars: number, model: Model | null): Usage {
  return pricedUsage({ input: Math.ceil(payloadChars / 4), output: 0 }, model);
}

export function withUsage(message: AssistantMessage, usage: Usage): AssistantMessage {
  return { ...message, usage };
}
