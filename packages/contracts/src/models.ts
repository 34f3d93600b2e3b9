// Models, prices, credentials and the function descriptions that a provider receives.
import { z } from "zod";

export const Pricing = z.object({
  input_per_1m: z.number(),
  output_per_1m: z.number(),
  cache_read_per_1m: z.number().optional(),
  cache_write_per_1m: z.number().optional(),
  /** Writes that live for an hour; a provider that reports them apart charges them apart. */
  cache_write_1h_per_1m: z.number().optional(),
});
export const Model = z.object({
  id: z.string(),
  provider: z.string(),
  api: z.string(),
  display_name: z.string(),
  context_window: z.number(),
  max_output_tokens: z.number().optional(),
  supports_thinking: z.boolean().optional(),
  supports_xhigh: z.boolean().optional(),
  supports_tools: z.boolean().optional(),
  supports_vision: z.boolean().optional(),
  supports_cache: z.boolean().optional(),
  thinking_budgets: z.record(z.string(), z.number()).optional(),
  transports: z.array(z.string()).optional(),
  default_cache_retention: z.string().optional(),
  pricing: Pricing.optional(),
});
export type Model = z.infer<typeof Model>;
export const ThinkingLevel = z.enum(["off", "minimal", "low", "medium", "high", "xhigh"]);
export type ThinkingLevel = z.infer<typeof ThinkingLevel>;

export const Credential = z.discriminatedUnion("type", [
  z.object({ type: z.literal("api_key"), key: z.string() }),
  z.object({
    type: z.literal("oauth"),
    access_token: z.string(),
    refresh_token: z.string().optional(),
    expires_at: z.number().optional(),
    scopes: z.array(z.string()).optional(),
    provider_extra: z.unknown().optional(),
  }),
]);
export type Credential = z.infer<typeof Credential>;

/** A function as offered to a model. `name` is the function id; a provider maps it with `toolNameOf` on its own wire. */
export const AgentFunction = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
  label: z.string().optional(),
  execution_mode: z.enum(["parallel", "sequential"]).optional(),
});
export type AgentFunction = z.infer<typeof AgentFunction>;

/** Integer micro-dollars; USD per million tokens is the same number as micro-dollars per token. */
export function costMicrousd(
  usage: {
    input?: number | undefined;
    output?: number | undefined;
    cache_read?: number | undefined;
    cache_write?: number | undefined;
  },
  pricing: z.infer<typeof Pricing> | undefined,
): number {
  if (pricing === undefined) return 0;
  const cost =
    (usage.input ?? 0) * pricing.input_per_1m +
    (usage.output ?? 0) * pricing.output_per_1m +
    (usage.cache_read ?? 0) * (pricing.cache_read_per_1m ?? pricing.input_per_1m) +
    (usage.cache_write ?? 0) * (pricing.cache_write_per_1m ?? pricing.input_per_1m);
  return Math.round(cost);
}
