// A whole fleet on this machine: NATS, Redis, and the workers in this process or each in its own.
//
// L1 One fleet per home: the run directory is claimed before anything starts.
// L2 What this fleet started, and nothing else, is gone after `stop`; also after a failed start.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Env } from "@flotilla/config";
import { type Backends, startBackends } from "./backends.ts";
import type { Composite } from "./composite.ts";
import { type DefaultModel, defaultModel } from "./default-model.ts";
import { FleetError } from "./fleet-error.ts";
import type { KeptProcess } from "./kept-process.ts";
import { stopOrphans } from "./orphans.ts";
import { requireFreePort } from "./ports.ts";
import { waitUntilReady } from "./readiness.ts";
import type { Replicas } from "./replicas.ts";
import { type RunDirectory, runDirectory } from "./run-directory.ts";
import { workerEnv } from "./worker-env.ts";
import { allWorkers } from "./worker-folders.ts";
import { endedProcess, startWorkerProcesses, type WorkerProcess } from "./worker-processes.ts";

export interface LocalFleetOptions {
  readonly home: string;
  /** Environment of the workers; `NATS_URL` and `REDIS_URL` in it replace our own servers. */
  readonly env: Env;
  /** Port of the first harness replica. */
  readonly port: number;
  /** @default all */
  readonly workers?: readonly string[];
  /** Every worker in a process of its own. @default false */
  readonly isSplit?: boolean;
  readonly replicas?: Replicas;
  /** Workers that end are started again; NATS and Redis always are. @default false */
  readonly isSupervised?: boolean;
  /** Where the output of worker processes goes: `inherit`, or log files in the home. @default "files" */
  readonly output?: "inherit" | "files";
  readonly version?: string;
  readonly report?: (line: string) => void;
  readonly readyTimeoutMs?: number;
  /** How long to wait for given servers. */
  readonly waitMs?: number;
  /** Gives the start up. Does nothing once the fleet is ready. */
  readonly signal?: AbortSignal;
}

export interface LocalFleet {
  readonly home: string;
  /** Front doors, one per harness replica. */
  readonly urls: readonly string[];
  readonly natsUrl: string;
  readonly redisUrl: string;
  /** Of turns that name none. */
  readonly defaultModel: DefaultModel;
  /** Null when NATS_URL or REDIS_URL was given. */
  readonly nats: KeptProcess | null;
  readonly redis: KeptProcess | null;
  /** Empty unless split. */
  readonly processes: readonly WorkerProcess[];
  /** Contract: resolves with the reason when the workers of this process cannot go on. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

const workerGraceMs = 6_000;
const serverGraceMs = 3_000;

export async function startLocalFleet(options: LocalFleetOptions): Promise<LocalFleet> {
  const home = resolve(options.home);
  const workers = options.workers ?? allWorkers();
  const harnesses = workers.includes("harness") ? harnessCount(options) : 0;
  const host = options.env.FLOTILLA_HOST ?? "127.0.0.1";
  const runDir = runDirectory(home);
  mkdirSync(resolve(home, "logs"), { recursive: true, mode: 0o700 });
  runDir.claim();
  const running = new Running(runDir);
  try {
    await stopOrphans(runDir);
    for (let replica = 0; replica < harnesses; replica += 1) await requireFreePort(options.port + replica, host);
    const setup = { ...options, home, workers, runDir, report: options.report ?? (() => {}) };
    await running.start(setup);
    const urls = Array.from({ length: harnesses }, (_, replica) => urlOf(host, options.port + replica));
    if (urls[0] !== undefined) runDir.writeAddress("http", urls[0]);
    const { readyTimeoutMs: timeoutMs } = options;
    const failure = (): Error | null => givenUp(options.signal) ?? running.failure();
    await waitUntilReady({ urls, failure, report: setup.report, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    return running.handle({ home, urls, defaultModel: defaultModel(options.env) });
  } catch (error) {
    await running.stop();
    throw error;
  }
}

interface Setup extends LocalFleetOptions {
  readonly workers: readonly string[];
  readonly runDir: RunDirectory;
  readonly report: (line: string) => void;
}

class Running {
  readonly #runDir: RunDirectory;
  #backends: Backends | undefined;
  #composite: Composite | undefined;
  #processes: WorkerProcess[] = [];
  #isSupervised = false;
  #stopping: Promise<void> | undefined;

  constructor(runDir: RunDirectory) {
    this.#runDir = runDir;
  }

  async start(setup: Setup): Promise<void> {
    this.#isSupervised = setup.isSupervised ?? false;
    this.#backends = await startBackends(setup);
    const expected = setup.workers.filter((worker) => setup.replicas?.[worker] !== 0);
    const env = workerEnv({ ...setup, workers: expected, backends: this.#backends.workerEnv });
    if (setup.isSplit === true) {
      const logs = setup.output === "inherit" ? "inherit" : resolve(setup.home, "logs");
      const { replicas = {} } = setup;
      this.#processes = await startWorkerProcesses({ ...setup, env, replicas, logs, isSupervised: this.#isSupervised });
      return;
    }
    this.#runDir.writePid("composite-0", process.pid);
    // Loaded only here: a split fleet's parent needs none of it.
    const { startComposite } = await import("./composite.ts");
    this.#composite = await startComposite({ workers: setup.workers, env, version: setup.version ?? "0.0.0" });
  }

  /** Why the fleet cannot become ready any more. */
  failure(): Error | null {
    return this.#composite?.failure() ?? (this.#isSupervised ? null : endedProcess(this.#processes));
  }

  handle(known: Pick<LocalFleet, "home" | "urls" | "defaultModel">): LocalFleet {
    const backends = this.#backends;
    if (backends === undefined) throw new FleetError("the fleet was not started");
    const { natsUrl, redisUrl, nats, redis } = backends;
    const failed = this.#composite?.failed ?? new Promise<Error>(() => {});
    return { ...known, natsUrl, redisUrl, nats, redis, processes: this.#processes, failed, stop: () => this.stop() };
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const stops = [this.#composite?.stop(), ...this.#processes.map((one) => one.stop(workerGraceMs))];
    const outcomes = await Promise.allSettled(stops);
    // The servers go last and in any case: workers say goodbye on the bus.
    await this.#backends?.stop(serverGraceMs);
    this.#runDir.clear();
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }
}

function givenUp(signal: AbortSignal | undefined): Error | null {
  return signal?.aborted === true ? new FleetError("the start was given up") : null;
}

function harnessCount(options: LocalFleetOptions): number {
  return options.isSplit === true ? (options.replicas?.harness ?? 1) : 1;
}

/** A host that means every address is reached on loopback. */
function urlOf(host: string, port: number): string {
  const reachable = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
