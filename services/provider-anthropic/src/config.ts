// What the worker reads from its environment.
import { flag, integer, milliseconds } from "@flotilla/config";
import { z } from "zod";

export const AnthropicConfig = z.object({
  /** With or without `/v1`. */
  ANTHROPIC_BASE_URL: z.url().default("https://api.anthropic.com"),
  /** Longest silence of a reply; the API sends pings in between. */
  ANTHROPIC_STALL_TIMEOUT_MS: milliseconds(120_000, { min: 100 }),
  /** Longest answer when neither the request nor the catalog says. */
  ANTHROPIC_MAX_TOKENS: integer({ min: 1 }).default(8_192),
  /** Prompt cache markers. */
  HARNESS_ANTHROPIC_CACHE: flag(true),
});
export type AnthropicConfig = z.output<typeof AnthropicConfig>;
