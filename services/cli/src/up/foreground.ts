// A fleet for as long as this process runs: the first signal stops it in order, the second at once.
import { type LocalFleet, type LocalFleetOptions, startLocalFleet } from "@flotilla/fleet";
import type { Terminal } from "../terminal.ts";
import { bannerOf, type Started } from "./banner.ts";

export interface ForegroundOptions {
  readonly fleet: LocalFleetOptions;
  readonly terminal: Terminal;
  readonly isJson: boolean;
}

const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export async function runForeground({ fleet: options, terminal, isJson }: ForegroundOptions): Promise<void> {
  const stopped = listenForSignals(terminal);
  terminal.note(`starting a fleet in ${options.home}`);
  const fleet = await startOrStop({ ...options, signal: stopped });
  if (fleet === null) return;
  // From the start of this process, as a person at the terminal counts it.
  const started = describe(fleet, options, performance.now());
  // With a parent that waits (`up --detach`), the parent prints.
  if (process.send === undefined) terminal.print(isJson ? JSON.stringify(started) : bannerOf(started));
  else process.send(started);
  const failure = await Promise.race([fleet.failed, aborted(stopped)]);
  await fleet.stop();
  if (failure !== null) throw failure;
  terminal.note("stopped");
}

/** Null when a signal came while it started. */
async function startOrStop(options: LocalFleetOptions): Promise<LocalFleet | null> {
  try {
    return await startLocalFleet(options);
  } catch (error) {
    if (options.signal?.aborted === true) return null;
    throw error;
  }
}

function listenForSignals(terminal: Terminal): AbortSignal {
  const controller = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    // Children are killed as this process exits.
    if (controller.signal.aborted) process.exit(1);
    terminal.note(`${signal}: stopping (once more: at once)`);
    controller.abort();
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  return controller.signal;
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener("abort", () => resolve(null), { once: true });
  });
}

function describe(fleet: LocalFleet, options: LocalFleetOptions, readyMs: number): Started {
  return {
    home: fleet.home,
    urls: [...fleet.urls],
    ready_ms: Math.round(readyMs),
    model: `${fleet.defaultModel.provider}/${fleet.defaultModel.model}`,
    is_split: options.isSplit === true,
    processes: fleet.processes.map(({ name, pid }) => ({ name, pid })),
  };
}
