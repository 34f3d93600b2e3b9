// A process with a pid file that is started again when it ends, as long as its policy says so.
//
// K1 The pid file names the newest process; it is replaced, never missing, while the fleet runs.
// K2 The first restart comes at once; one that ends again soon after its start waits longer each time.
import { type Child, type ChildExit, type ChildSpec, describeExit, startChild, stopChild } from "./child.ts";
import type { RunDirectory } from "./run-directory.ts";

export interface KeptProcessOptions {
  /** Also the name of the pid file. */
  readonly name: string;
  readonly spec: ChildSpec;
  readonly runDir: RunDirectory;
  readonly isRestarted: boolean;
  readonly report: (line: string) => void;
  /** Runs before every start. */
  readonly prepare?: () => Promise<void>;
}

export interface KeptProcess {
  readonly name: string;
  readonly pid: number;
  isRunning(): boolean;
  /** How the newest process ended, while it has ended. */
  lastExit(): ChildExit | null;
  /** Contract: resolves once the signal is sent; the process may still run. */
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL, and waits until it is gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again when it does not run. */
  respawn(): Promise<void>;
  stop(graceMs: number): Promise<void>;
}

const maxDelayMs = 10_000;
const settledAfterMs = 1_000;

export async function keepProcess(options: KeptProcessOptions): Promise<KeptProcess> {
  const { name, runDir, report } = options;
  let phase: "running" | "stopping" = "running";
  let restartTimer: NodeJS.Timeout | undefined;
  let delayMs = 0;
  let exit: ChildExit | null = null;
  let child = await launch();

  async function launch(): Promise<Child> {
    await options.prepare?.();
    const startedAt = performance.now();
    const fresh = startChild(options.spec);
    exit = null;
    // A process that could not be started has no pid; its exit tells why.
    if (fresh.pid > 0) runDir.writePid(name, fresh.pid);
    void fresh.exited.then((ended) => onExit(ended, performance.now() - startedAt));
    return fresh;
  }

  function onExit(ended: ChildExit, livedMs: number): void {
    exit = ended;
    if (phase === "stopping") return;
    if (!options.isRestarted) {
      report(`${name} ended with ${describeExit(ended)}`);
      return;
    }
    delayMs = livedMs > settledAfterMs ? 0 : Math.min(maxDelayMs, Math.max(100, delayMs * 2));
    report(`${name} ended with ${describeExit(ended)}; starting it again`);
    restartTimer = setTimeout(() => void relaunch(), delayMs);
  }

  async function relaunch(): Promise<void> {
    clearTimeout(restartTimer);
    if (phase === "stopping" || child.isRunning()) return;
    child = await launch();
  }

  return {
    name,
    get pid() {
      return child.pid;
    },
    isRunning: () => child.isRunning(),
    lastExit: () => exit,
    signal: (signal) => child.signal(signal),
    async kill(signal = "SIGKILL") {
      const victim = child;
      victim.signal(signal);
      await victim.exited;
    },
    respawn: relaunch,
    async stop(graceMs) {
      phase = "stopping";
      clearTimeout(restartTimer);
      await stopChild(child, graceMs);
    },
  };
}
