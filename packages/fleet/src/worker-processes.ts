// The workers of a split fleet: one process per replica, each with its pid file.
import { join } from "node:path";
import type { Env } from "@flotilla/config";
import { describeExit } from "./child.ts";
import { FleetError } from "./fleet-error.ts";
import { KeptProcess, type KeptProcessOptions } from "./kept-process.ts";
import type { Replicas } from "./replicas.ts";
import type { RunDirectory } from "./run-directory.ts";
import { envOfWorker } from "./worker-env.ts";
import { mainFileOf } from "./worker-folders.ts";

export class WorkerProcess extends KeptProcess {
  readonly worker: string;
  /** From 0. */
  readonly replica: number;

  constructor(options: KeptProcessOptions, identity: { worker: string; replica: number }) {
    super(options);
    this.worker = identity.worker;
    this.replica = identity.replica;
  }
}

export interface WorkerProcessesOptions {
  readonly workers: readonly string[];
  readonly replicas: Replicas;
  readonly isSupervised: boolean;
  readonly env: Env;
  readonly runDir: RunDirectory;
  /** Folder of their logs; `inherit` shows them in this terminal. */
  readonly logs: string;
  readonly report: (line: string) => void;
}

export async function startWorkerProcesses(options: WorkerProcessesOptions): Promise<WorkerProcess[]> {
  const wanted = options.workers.flatMap((worker) =>
    Array.from({ length: options.replicas[worker] ?? 1 }, (_, replica) => ({ worker, replica })),
  );
  return Promise.all(wanted.map((one) => startWorkerProcess({ ...options, ...one })));
}

async function startWorkerProcess(
  options: WorkerProcessesOptions & { worker: string; replica: number },
): Promise<WorkerProcess> {
  const { worker, replica, logs, runDir, report, isSupervised } = options;
  const name = `${worker}-${replica}`;
  const kept: KeptProcessOptions = {
    name,
    spec: {
      command: process.execPath,
      args: [mainFileOf(worker)],
      env: { ...envOfWorker(worker, options.env), FLOTILLA_INSTANCE: String(replica) },
      output: logs === "inherit" ? logs : join(logs, `${name}.log`),
    },
    runDir,
    isRestarted: isSupervised,
    report: (line) => report(isSupervised ? line : `${line}; not started again (--supervise would)`),
  };
  const started = new WorkerProcess(kept, { worker, replica });
  await started.respawn();
  return started;
}

/** The first process that ended on its own, as an error. */
export function endedProcess(processes: readonly WorkerProcess[]): FleetError | null {
  for (const one of processes) {
    const exit = one.lastExit();
    if (exit === null) continue;
    const exitCode = exit.code === 78 ? 78 : 1;
    return new FleetError(`worker ${one.name} ended with ${describeExit(exit)} before the fleet was ready`, {
      exitCode,
    });
  }
  return null;
}
