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

const maxDelayMs = 10_000;
const settledAfterMs = 1_000;

export class KeptProcess {
  readonly name: string;
  readonly #options: KeptProcessOptions;
  #child: Child | null = null;
  #exit: ChildExit | null = null;
  #isStopping = false;
  #delayMs = 0;
  #restartTimer: NodeJS.Timeout | undefined;

  /** Use `keepProcess`. */
  constructor(options: KeptProcessOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  isRunning(): boolean {
    return this.#child?.isRunning() === true;
  }

  /** How the newest process ended, while it has ended. */
  lastExit(): ChildExit | null {
    return this.#exit;
  }

  /** Does not wait for what the signal does. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.signal(signal);
  }

  /** Sends the signal and waits until that process is gone. @default SIGKILL */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const victim = this.#child;
    victim?.signal(signal);
    await victim?.exited;
  }

  /** Starts it when it does not run. */
  async respawn(): Promise<void> {
    clearTimeout(this.#restartTimer);
    if (this.#isStopping || this.isRunning()) return;
    await this.#options.prepare?.();
    const startedAt = performance.now();
    const child = startChild(this.#options.spec);
    this.#exit = null;
    this.#child = child;
    // A process that could not be started has no pid; its exit tells why.
    if (child.pid > 0) this.#options.runDir.writePid(this.name, child.pid);
    void child.exited.then((exit) => this.#onExit(exit, performance.now() - startedAt));
  }

  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    if (this.#child !== null) await stopChild(this.#child, graceMs);
  }

  #onExit(exit: ChildExit, livedMs: number): void {
    this.#exit = exit;
    if (this.#isStopping) return;
    const { isRestarted, report } = this.#options;
    const ended = `${this.name} ended with ${describeExit(exit)}`;
    if (!isRestarted) {
      report(ended);
      return;
    }
    this.#delayMs = livedMs > settledAfterMs ? 0 : Math.min(maxDelayMs, Math.max(100, this.#delayMs * 2));
    report(`${ended}; starting it again`);
    this.#restartTimer = setTimeout(() => void this.respawn(), this.#delayMs);
  }
}

export async function keepProcess(options: KeptProcessOptions): Promise<KeptProcess> {
  const kept = new KeptProcess(options);
  await kept.respawn();
  return kept;
}
