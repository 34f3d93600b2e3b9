// Plays a reply that is written in a test to this worker.
import { type OwnCall, playOwn } from "../../../test/upstream/own-scenarios.ts";
import type { ScenarioReply } from "../../../test/upstream/upstream.mjs";
import { definition } from "../src/worker.ts";

const own = {
  api: "openai" as const,
  provider: "openai",
  model: "gpt-fixture-1",
  definition,
  env: (url: string) => ({ OPENAI_BASE_URL: `${url}/openai/v1/`, OPENAI_STALL_TIMEOUT_MS: "400" }),
};

export const anOwnCall = (replies: ScenarioReply | ScenarioReply[], options: Omit<OwnCall, "replies"> = {}) =>
  playOwn(own, { replies: Array.isArray(replies) ? replies : [replies], ...options });

/** With `[DONE]` at its end. */
export const streamed = (...chunks: (Record<string, unknown> | Record<string, unknown>[])[]): ScenarioReply => ({
  events: chunks.flat(),
});
/** Without. */
export const cut = (...chunks: (Record<string, unknown> | Record<string, unknown>[])[]): ScenarioReply => ({
  ...streamed(...chunks),
  done: false,
});
