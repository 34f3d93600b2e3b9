// Token counts of Chat Completions servers as ours: cached tokens out of the input, reasoning in the output. Pure.
import { asCount, asRecord } from "../json.ts";
import type { TokenCounts } from "../pricing.ts";

export function chatUsage(value: unknown): TokenCounts | null {
  const usage = asRecord(value);
  const prompt = asCount(usage?.prompt_tokens) ?? asCount(usage?.input_tokens);
  const completion = asCount(usage?.completion_tokens) ?? asCount(usage?.output_tokens);
  if (usage === null || (prompt === undefined && completion === undefined)) return null;
  const details = asRecord(usage.prompt_tokens_details);
  const cached =
    asCount(details?.cached_tokens) ?? asCount(usage.cached_tokens) ?? asCount(usage.prompt_cache_hit_tokens) ?? 0;
  const written = asCount(details?.cache_write_tokens) ?? 0;
  return {
    input: Math.max(0, (prompt ?? 0) - cached - written),
    output: outputOf(usage, prompt ?? 0, completion ?? 0),
    cache_read: cached,
    cache_write: written,
  };
}

/** Some servers count reasoning beside the completion, not in it; the total tells. */
function outputOf(usage: Record<string, unknown>, prompt: number, completion: number): number {
  const reasoning = asCount(asRecord(usage.completion_tokens_details)?.reasoning_tokens) ?? 0;
  const isBeside = reasoning > completion || asCount(usage.total_tokens) === prompt + completion + reasoning;
  return isBeside ? completion + reasoning : completion;
}
