// Stopping processes by their pid files: all of a fleet (`down`), or what a killed `up` left behind.
import { processAgeMs } from "./process-identity.ts";
import { fleetPidName, type RunDirectory, runDirectory } from "./run-directory.ts";

const fleetGraceMs = 20_000;
const orphanGraceMs = 5_000;
const pollMs = 20;

export interface DownResult {
  /** Pid file names of what was stopped. */
  readonly stopped: readonly string[];
}

/** Stops exactly what `up` started in this home. The fleet process stops its own children; what is left is an orphan. */
export async function stopFleet(home: string): Promise<DownResult> {
  const runDir = runDirectory(home);
  const live = runDir.pidNames().filter((name) => runDir.livePid(name) !== null);
  await stopOne(runDir, fleetPidName, fleetGraceMs);
  await stopOrphans(runDir);
  runDir.clear();
  return { stopped: live.filter((name) => name !== fleetPidName) };
}

/** Stops what runs by pid file except this process; the servers after the workers. */
export async function stopOrphans(runDir: RunDirectory): Promise<void> {
  const names = runDir.pidNames().filter((name) => name !== fleetPidName);
  const isServer = (name: string): boolean => name === "nats" || name === "redis";
  for (const group of [names.filter((name) => !isServer(name)), names.filter(isServer)]) {
    await Promise.all(group.map((name) => stopOne(runDir, name, orphanGraceMs)));
  }
}

async function stopOne(runDir: RunDirectory, name: string, graceMs: number): Promise<void> {
  const pid = runDir.livePid(name);
  if (pid !== null && pid !== process.pid) {
    const hasEnded = endOf(pid);
    signal(pid, "SIGTERM");
    signal(pid, "SIGCONT");
    if (!(await waitFor(hasEnded, graceMs))) {
      signal(pid, "SIGKILL");
      await waitFor(hasEnded, 2_000);
    }
  }
  if (pid !== process.pid) runDir.removePid(name);
}

/** By age: its pid file may go before it does, and its number may be given away right after. */
function endOf(pid: number): () => boolean {
  const age = processAgeMs(pid);
  return () => {
    const now = processAgeMs(pid);
    return now === null || age === null || now < age;
  };
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It may end between the look and the signal.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function waitFor(check: () => boolean, timeoutMs: number): Promise<boolean> {
  const giveUpAt = Date.now() + timeoutMs;
  while (!check()) {
    if (Date.now() > giveUpAt) return false;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return true;
}
