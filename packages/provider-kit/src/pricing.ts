// Tokens to money, in integer micro-dollars (wire.md 7). Pure.
import { costMicrousd, type Pricing, type Usage } from "@flotilla/contracts";
import type { z } from "zod";

/** Totals of one model call: `input` without cached tokens, `output` with reasoning. */
export interface TokenCounts {
  readonly input: number;
  readonly output: number;
  readonly cache_read: number;
  readonly cache_write: number;
  /** The part of `cache_write` that lives for an hour. */
  readonly cache_write_1h?: number;
}

export function usageOf(counts: TokenCounts, pricing: z.output<typeof Pricing> | undefined): Usage {
  const { input, output, cache_read, cache_write, cache_write_1h = 0 } = counts;
  const tokens = { input, output, cache_read, cache_write };
  if (pricing === undefined) return tokens;
  const shortRate = pricing.cache_write_per_1m ?? pricing.input_per_1m;
  const extra = cache_write_1h * ((pricing.cache_write_1h_per_1m ?? shortRate) - shortRate);
  const cost = costMicrousd(tokens, pricing) + Math.round(extra);
  return { ...tokens, cost_microusd: cost, cost_usd: cost / 1_000_000 };
}

export function addCounts(first: TokenCounts, second: TokenCounts): TokenCounts {
  return {
    input: first.input + second.input,
    output: first.output + second.output,
    cache_read: first.cache_read + second.cache_read,
    cache_write: first.cache_write + second.cache_write,
    cache_write_1h: (first.cache_write_1h ?? 0) + (second.cache_write_1h ?? 0),
  };
}
