// The provider-anthropic worker as a value.
import { loadConfig } from "@flotilla/config";
import { endpointOf, implementProvider } from "@flotilla/provider-kit";
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { streamMessages } from "./adapters/stream-messages.ts";
import { AnthropicConfig } from "./config.ts";

export const definition: WorkerDefinition = {
  name: "provider-anthropic",
  build({ env, bus, clock }) {
    const config = loadConfig(AnthropicConfig, env);
    return defineWorker({
      name: "provider-anthropic",
      version: "0.1.0",
      functions: implementProvider({
        name: "anthropic",
        credentialVariable: "ANTHROPIC_API_KEY",
        bus,
        defaultMaxTokens: config.ANTHROPIC_MAX_TOKENS,
        now: () => clock.now(),
        streamCall: streamMessages({
          url: endpointOf(config.ANTHROPIC_BASE_URL, "/messages"),
          stallTimeoutMs: config.ANTHROPIC_STALL_TIMEOUT_MS,
          usesCache: config.HARNESS_ANTHROPIC_CACHE,
        }),
      }),
      background: [],
    });
  },
};
