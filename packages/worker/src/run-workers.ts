// Workers in one process, each with its own bus connection; no signal handlers and no exit codes (run-main.ts has them).
import type { Env } from "@flotilla/config";
import { FlotillaError } from "@flotilla/errors";
import { createLogger, type Logger, registerPropagation } from "@flotilla/telemetry";
import { collectDefaultMetrics, Registry as MetricsRegistry } from "prom-client";
import { type AdminServer, startAdminServer } from "./admin-server.ts";
import { createLiveness, type Readiness, readinessOf } from "./health.ts";
import { RunningWorker } from "./running-worker.ts";
import { systemClock } from "./system-clock.ts";
import type { Clock, WorkerDefinition } from "./types.ts";
import { loadWorkerEnv, type WorkerEnv } from "./worker-env.ts";

export interface RunWorkersOptions {
  readonly definitions: readonly WorkerDefinition[];
  readonly env: Env;
  /** @default JSON lines on stderr at LOG_LEVEL */
  readonly logger?: Logger | undefined;
  readonly clock?: Clock | undefined;
  /** @default a registry of its own */
  readonly metrics?: MetricsRegistry | undefined;
  /** Contract: called at most once, when a worker that was ready cannot go on. */
  readonly onFatal?: ((error: unknown) => void) | undefined;
}

export interface WorkersHandle {
  readonly workers: readonly RunningWorker[];
  /** The bound admin port, once ready; undefined when there is none. */
  readonly adminPort: number | undefined;
  /** Resolves when every worker is registered; rejects with the first reason why one cannot start. */
  ready(): Promise<void>;
  readiness(): Promise<Readiness>;
  /** Drains and stops everything; idempotent. Rejects when it takes longer than the shutdown grace. */
  stop(): Promise<void>;
}

/** Throws CONFIG_INVALID at once; everything else shows in `ready()`. */
export function runWorkers(options: RunWorkersOptions): WorkersHandle {
  const shared = loadWorkerEnv(options.definitions, options.env);
  refuseDuplicates(options.definitions);
  for (const definition of options.definitions) definition.checkEnv?.(options.env);
  registerPropagation();
  const logger = options.logger ?? createLogger({ level: shared.LOG_LEVEL, name: nameOf(options.definitions) });
  const metrics = options.metrics ?? new MetricsRegistry();
  const clock = options.clock ?? systemClock;
  let isFailed = false;
  const onFatal = (error: unknown): void => {
    if (isFailed) return;
    isFailed = true;
    logger.error("a worker cannot go on", { error });
    options.onFatal?.(error);
  };
  const workers = options.definitions.map(
    (definition) => new RunningWorker({ definition, shared, env: options.env, logger, metrics, clock, onFatal }),
  );
  return startAll({ workers, shared, logger, metrics, clock });
}

interface Process {
  readonly workers: readonly RunningWorker[];
  readonly shared: WorkerEnv;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  readonly clock: Clock;
}

function startAll(run: Process): WorkersHandle {
  const { workers, logger } = run;
  let admin: AdminServer | undefined;
  let stopping: Promise<void> | undefined;

  const start = async (): Promise<void> => {
    // Up before the workers, so that /readyz says what is waited for.
    admin = await startAdmin(run);
    const outcomes = await Promise.allSettled(workers.map((worker) => worker.start()));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed === undefined) return;
    await stop();
    throw failed.reason;
  };
  const stop = async (): Promise<void> => {
    const graceMs = run.shared.SHUTDOWN_GRACE_MS ?? Math.max(0, ...workers.map((worker) => worker.drainMs)) + 10_000;
    stopping ??= within(
      graceMs,
      stopAll(workers, () => admin),
    );
    await stopping;
  };

  const started = start();
  // Told to whoever asks by `ready`; asked by nobody, it must not end the process.
  started.catch((error: unknown) => logger.debug("not all workers have started", { error }));
  return {
    workers,
    get adminPort() {
      return admin?.port;
    },
    ready: () => started,
    readiness: () => readinessOf(workers),
    stop,
  };
}

async function startAdmin(run: Process): Promise<AdminServer | undefined> {
  const { ADMIN_PORT: port, ADMIN_HOST: host } = run.shared;
  if (port === undefined) return undefined;
  collectDefaultMetrics({ register: run.metrics });
  return startAdminServer({
    port,
    host,
    metrics: run.metrics,
    readiness: () => readinessOf(run.workers),
    liveness: createLiveness(run.workers, run.clock.now),
    logger: run.logger,
  });
}

async function stopAll(workers: readonly RunningWorker[], admin: () => AdminServer | undefined): Promise<void> {
  const outcomes = await Promise.allSettled(workers.map((worker) => worker.stop()));
  await admin()?.close();
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

function refuseDuplicates(definitions: readonly WorkerDefinition[]): void {
  const names = definitions.map(({ name }) => name);
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate !== undefined) throw new TypeError(`worker ${duplicate} is given twice`);
}

export function nameOf(definitions: readonly WorkerDefinition[]): string {
  const [first] = definitions;
  return definitions.length === 1 && first !== undefined ? first.name : "flotilla";
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new FlotillaError("TIMEOUT", `the shutdown took longer than its grace of ${ms} ms`)),
      Math.min(ms, 2_147_483_647),
    );
  });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
