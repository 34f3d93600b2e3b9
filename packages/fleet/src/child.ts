// One child process of the fleet: started in a group of its own, so that Ctrl-C in a terminal reaches only us.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";

export interface ChildSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** File that gets its output; `inherit` shows it in this terminal. */
  readonly output: string;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Set when it could not even be started. */
  readonly error?: Error;
}

export interface Child {
  readonly pid: number;
  readonly exited: Promise<ChildExit>;
  readonly isRunning: () => boolean;
  signal(signal: NodeJS.Signals): void;
}

const running = new Set<ChildProcess>();
// Whatever ends this process in an orderly way takes its children along.
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export function startChild(spec: ChildSpec): Child {
  const output = spec.output === "inherit" ? ("inherit" as const) : openSync(spec.output, "a", 0o600);
  const child = spawn(spec.command, spec.args, {
    detached: true,
    env: { ...spec.env } as NodeJS.ProcessEnv,
    stdio: ["ignore", output, output],
  });
  if (typeof output === "number") closeSync(output);
  running.add(child);
  const exited = new Promise<ChildExit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", (error) => resolve({ code: null, signal: null, error }));
  });
  void exited.then(() => running.delete(child));
  return {
    pid: child.pid ?? 0,
    exited,
    isRunning: () => running.has(child),
    signal: (signal) => void child.kill(signal),
  };
}

/** `code 1`, `SIGKILL`, or why it did not start. */
export function describeExit(exit: ChildExit): string {
  if (exit.error !== undefined) return exit.error.message;
  return exit.signal ?? `code ${exit.code}`;
}

/** SIGTERM, and SIGKILL for what is still there after the grace. */
export async function stopChild(child: Child, graceMs: number): Promise<void> {
  if (!child.isRunning()) return;
  child.signal("SIGTERM");
  // A stopped process does not act on SIGTERM until it is continued.
  child.signal("SIGCONT");
  const timer = setTimeout(() => child.signal("SIGKILL"), graceMs);
  await child.exited;
  clearTimeout(timer);
}
