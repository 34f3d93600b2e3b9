// Plays a reply that is written in a test to this worker.
import { type OwnCall, playOwn } from "../../../test/upstream/own-scenarios.ts";
import type { ScenarioReply } from "../../../test/upstream/upstream.mjs";
import { definition } from "../src/worker.ts";

const own = {
  api: "anthropic" as const,
  provider: "anthropic",
  model: "claude-fixture-1",
  definition,
  env: (url: string) => ({ ANTHROPIC_BASE_URL: `${url}/anthropic/v1/`, ANTHROPIC_STALL_TIMEOUT_MS: "400" }),
};

export const anOwnCall = (replies: ScenarioReply | ScenarioReply[], options: Omit<OwnCall, "replies"> = {}) =>
  playOwn(own, { replies: Array.isArray(replies) ? replies : [replies], ...options });

export const streamed = (...events: (Record<string, unknown> | Record<string, unknown>[])[]): ScenarioReply => ({
  events: events.flat(),
});
