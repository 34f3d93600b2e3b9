// The turn-orchestrator as a value: its functions, its consumers, and how they are built.
import { loadConfig } from "@flotilla/config";
import { defineWorker, type Runtime, type Worker, type WorkerDefinition } from "@flotilla/worker";
import { OrchestratorConfig } from "./config.ts";
import { Deliveries } from "./engine/deliveries.ts";
import { createTurnMetrics } from "./engine/metrics.ts";
import { createPorts } from "./engine/ports.ts";
import { Timers } from "./engine/timers.ts";
import type { EngineDeps } from "./engine/types.ts";
import { makeAgentTrigger } from "./functions/agent-trigger.ts";
import { makeRunFunctions } from "./functions/run.ts";
import { makeTurnGetState } from "./functions/turn-get-state.ts";

export const definition: WorkerDefinition = {
  name: "turn-orchestrator",
  config: OrchestratorConfig,
  build: buildWorker,
};

export function buildWorker(runtime: Runtime): Worker {
  const now = () => runtime.clock.now();
  const deps: EngineDeps = {
    bus: runtime.bus,
    config: loadConfig(OrchestratorConfig, runtime.env),
    logger: runtime.logger,
    now,
    random: Math.random,
    ports: createPorts(runtime.bus, now),
    metrics: createTurnMetrics(runtime.metrics, () => deliveries.running),
  };
  const deliveries: Deliveries = new Deliveries(deps);
  const timers = new Timers(deps);
  return defineWorker({
    name: "turn-orchestrator",
    version: "0.1.0",
    functions: [...makeRunFunctions(deps), makeTurnGetState(deps), makeAgentTrigger(deps)],
    // Turns are handed over at once; only its own functions finish.
    drainSeconds: 10,
    background: [
      {
        name: "turns",
        async start() {
          await deliveries.start();
          await timers.start();
        },
        async stop() {
          timers.stop();
          await deliveries.stop();
        },
      },
    ],
  });
}
