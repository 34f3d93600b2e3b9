// What the worker reads from its environment.
import { integer, milliseconds } from "@flotilla/config";
import { z } from "zod";

export const OpenaiConfig = z.object({
  /** With or without `/v1`. */
  OPENAI_BASE_URL: z.url().default("https://api.openai.com/v1"),
  /** Longest silence of a reply. Models that reason send nothing meanwhile, so this is longer than elsewhere. */
  OPENAI_STALL_TIMEOUT_MS: milliseconds(240_000, { min: 100 }),
  /** Longest answer when neither the request nor the catalog says. */
  OPENAI_MAX_TOKENS: integer({ min: 1 }).default(8_192),
});
export type OpenaiConfig = z.output<typeof OpenaiConfig>;
