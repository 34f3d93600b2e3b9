// The session worker: what it is made of.
import { connectState } from "@flotilla/state";
import { type Background, defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { createProjector } from "./adapters/projector.ts";
import { createRepair } from "./adapters/repair.ts";
import { SessionConfig, sessionConfig } from "./config.ts";
import { inboxFunctions } from "./functions/inbox.ts";
import { treeIndexFunctions } from "./functions/tree-index.ts";
import { treeReadFunctions } from "./functions/tree-read.ts";
import { treeWriteFunctions } from "./functions/tree-write.ts";
import { projectionMetrics } from "./metrics.ts";

export const definition: WorkerDefinition = {
  name: "session",
  config: SessionConfig,
  build({ bus, logger, metrics, env }) {
    const config = sessionConfig(env);
    const state = connectState({ url: config.REDIS_URL, logger });
    const { onProjected } = projectionMetrics(metrics);
    const repair = createRepair({ bus, state, logger });
    const projector = createProjector({ bus, state, repair, logger, onProjected });
    const background: Background = {
      ...projector,
      async stop() {
        await projector.stop();
        await state.close();
      },
    };
    return defineWorker({
      name: "session",
      version: "0.1.0",
      functions: [
        ...treeWriteFunctions(bus),
        ...treeReadFunctions(bus),
        ...treeIndexFunctions({ bus, state, projector, repair, listWaitMs: config.SESSION_LIST_WAIT_MS }),
        ...inboxFunctions(bus),
      ],
      background: [background],
    });
  },
};
