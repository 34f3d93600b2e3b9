// The provider-openai worker as a value.
import { loadConfig } from "@flotilla/config";
import { endpointOf, implementProvider } from "@flotilla/provider-kit";
import { streamChat } from "@flotilla/provider-kit/chat-completions";
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { OpenaiConfig } from "./config.ts";
import { openaiDialect } from "./domain/openai-dialect.ts";

export const definition: WorkerDefinition = {
  name: "provider-openai",
  build({ env, bus, clock }) {
    const config = loadConfig(OpenaiConfig, env);
    return defineWorker({
      name: "provider-openai",
      version: "0.1.0",
      functions: implementProvider({
        name: "openai",
        credentialVariable: "OPENAI_API_KEY",
        bus,
        defaultMaxTokens: config.OPENAI_MAX_TOKENS,
        now: () => clock.now(),
        streamCall: streamChat(
          openaiDialect({
            url: endpointOf(config.OPENAI_BASE_URL, "/chat/completions"),
            stallTimeoutMs: config.OPENAI_STALL_TIMEOUT_MS,
          }),
        ),
      }),
      background: [],
    });
  },
};
