// A fleet of real processes that a test may kill and start again, one by one.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bus } from "@flotilla/bus";
import {
  freePorts,
  type KeptProcess,
  type LocalFleetOptions,
  type Replicas,
  startLocalFleet,
  type WorkerProcess,
} from "@flotilla/fleet";
import { operatorBus } from "./start-fleet.ts";

export interface ProcessFleetOptions {
  readonly replicas?: Replicas;
  /** @default all */
  readonly workers?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Kept when given; otherwise a folder of its own that goes with the fleet. */
  readonly home?: string;
  readonly isSupervised?: boolean;
}

export interface ProcessFleet extends AsyncDisposable {
  readonly home: string;
  /** Front doors, one per harness replica. */
  readonly urls: readonly string[];
  readonly nats: { readonly url: string; readonly process: KeptProcess };
  readonly redis: { readonly url: string; readonly process: KeptProcess };
  /** With the operator's login. */
  readonly bus: Bus;
  pid(worker: string, replica?: number): number;
  isRunning(worker: string, replica?: number): boolean;
  /** Sends the signal and waits until the process is gone. @default SIGKILL */
  kill(worker: string, replica?: number, signal?: NodeJS.Signals): Promise<void>;
  /** Sends a signal that does not end it, for example SIGSTOP. */
  signal(worker: string, replica: number, signal: NodeJS.Signals): void;
  /** Starts a killed process again; resolves once it is started, not yet ready. */
  respawn(worker: string, replica?: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startProcessFleet(options: ProcessFleetOptions = {}): Promise<ProcessFleet> {
  const stack = new AsyncDisposableStack();
  try {
    return await assemble(stack, options);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function assemble(stack: AsyncDisposableStack, options: ProcessFleetOptions): Promise<ProcessFleet> {
  const home = options.home ?? (await mkdtemp(join(tmpdir(), "flotilla-home-")));
  if (options.home === undefined) stack.defer(() => rm(home, { recursive: true, force: true }));
  const fleet = await startLocalFleet(await fleetOptions(home, options));
  stack.defer(() => fleet.stop());
  stack.defer(killAtExit(() => [...fleet.processes, own(fleet.nats), own(fleet.redis)]));
  const bus = await operatorBus(fleet.natsUrl);
  stack.defer(() => bus.close());
  const processOf = (worker: string, replica = 0): WorkerProcess => {
    const found = fleet.processes.find((one) => one.worker === worker && one.replica === replica);
    if (found === undefined) throw new Error(`the fleet has no ${worker}-${replica}`);
    return found;
  };
  const stop = (): Promise<void> => stack.disposeAsync();
  return {
    home,
    urls: fleet.urls,
    nats: { url: fleet.natsUrl, process: own(fleet.nats) },
    redis: { url: fleet.redisUrl, process: own(fleet.redis) },
    bus,
    pid: (worker, replica) => processOf(worker, replica).pid,
    isRunning: (worker, replica) => processOf(worker, replica).isRunning(),
    kill: (worker, replica, signal) => processOf(worker, replica).kill(signal),
    signal: (worker, replica, signal) => processOf(worker, replica).signal(signal),
    respawn: (worker, replica) => processOf(worker, replica).respawn(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function fleetOptions(home: string, options: ProcessFleetOptions): Promise<LocalFleetOptions> {
  const { replicas = {}, workers, env = {} } = options;
  return {
    home,
    port: await freePorts(Math.max(1, replicas.harness ?? 1)),
    // Without the test run's own variables, except what a process needs to run at all.
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DRAIN_SECONDS: "1", ...env },
    isSplit: true,
    replicas,
    isSupervised: options.isSupervised ?? false,
    output: "files",
    readyTimeoutMs: 60_000,
    ...(workers === undefined ? {} : { workers }),
  };
}

/** A run that ends without stopping its fleet leaves no process behind. Returns what takes this back. */
function killAtExit(processes: () => readonly KeptProcess[]): () => void {
  const killAll = (): void => {
    for (const one of processes()) if (one.isRunning()) one.signal("SIGKILL");
  };
  process.once("exit", killAll);
  return () => void process.removeListener("exit", killAll);
}

function own(process: KeptProcess | null): KeptProcess {
  if (process === null) throw new Error("a process fleet runs its own NATS and Redis");
  return process;
}
