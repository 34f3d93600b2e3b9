// The scripted provider as a value.
import { loadConfig } from "@flotilla/config";
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { createCallLog } from "./adapters/call-log.ts";
import { ScriptedConfig } from "./config.ts";
import { makeAnswers } from "./functions/answer.ts";
import { makeCalls } from "./functions/calls.ts";

export const definition: WorkerDefinition = {
  name: "provider-scripted",
  config: ScriptedConfig,
  build({ bus, env, clock }) {
    const config = loadConfig(ScriptedConfig, env);
    const log = createCallLog(bus, (ms) => clock.sleep(ms));
    return defineWorker({
      name: "provider-scripted",
      version: "0.1.0",
      functions: [...makeAnswers({ bus, log, clock, wordMs: config.FLOTILLA_SCRIPTED_WORD_MS }), makeCalls(log)],
    });
  },
};
