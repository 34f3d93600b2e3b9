export { defineWorker, type WorkerOptions } from "./define-worker.ts";
export type { Readiness } from "./health.ts";
export { implement, implementPrepared } from "./implement.ts";
export { isInstanceDead } from "./instance-liveness.ts";
export { type RunMainOptions, runMain } from "./run-main.ts";
export { type RunWorkersOptions, runWorkers, type WorkersHandle } from "./run-workers.ts";
export type { RunningWorker, WorkerHealth } from "./running-worker.ts";
export { systemClock } from "./system-clock.ts";
export type {
  Background,
  Clock,
  HandlerContext,
  Implementation,
  Runtime,
  Worker,
  WorkerDefinition,
} from "./types.ts";
