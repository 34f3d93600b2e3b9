// A fleet as a user starts it: `flotilla up` in a process of its own, with its processes, bus and costs in view.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseNatsUrl } from "@flotilla/bus";
import { freePort, repositoryRoot, runDirectory } from "@flotilla/fleet";
import { until } from "@flotilla/testkit";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { cpuMsOf, proportionalBytesOf, residentBytesOf } from "./processes.ts";
import { rounded, sum } from "./statistics.ts";

export type Mode = "composite" | "split";

export interface BenchFleet {
  readonly mode: Mode;
  readonly url: string;
  /** From the start of `flotilla up` to the first 200 of /readyz. */
  readonly readyMs: number;
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  /** User and system time of all its processes so far. */
  cpuMs(): Record<string, number>;
  memory(): { processes: number; residentMiB: number; proportionalMiB: number; byProcess: Record<string, number> };
  stop(): Promise<void>;
}

export interface BenchFleetOptions {
  readonly mode: Mode;
  readonly upstreamUrl: string;
  /** Arguments of Node in the process of `flotilla up`, for a profiler. */
  readonly nodeArgs?: readonly string[];
}

const readyWithinMs = 60_000;
const stopWithinMs = 20_000;

export async function startBenchFleet(options: BenchFleetOptions): Promise<BenchFleet> {
  const { mode } = options;
  const home = await mkdtemp(join(tmpdir(), "flotilla-bench-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const startedAt = performance.now();
  const child = startUp(options, home, port);
  const stop = async (): Promise<void> => {
    await end(child);
    await rm(home, { recursive: true, force: true });
  };
  try {
    const isOver = (): boolean => child.exitCode !== null;
    await until(async () => isOver() || (await isReady(url)), {
      timeoutMs: readyWithinMs,
      what: `the ${mode} fleet is ready`,
    });
    if (isOver()) throw new Error(`flotilla up ended with ${child.exitCode}`);
    const readyMs = rounded(performance.now() - startedAt);
    const runDir = runDirectory(home);
    const pids = new Map(runDir.pidNames().flatMap((name) => entryOf(name, runDir.livePid(name))));
    const nc = await connectOperator(home);
    return {
      mode,
      url,
      readyMs,
      nc,
      jsm: await jetstreamManager(nc),
      cpuMs: () => Object.fromEntries([...pids].map(([name, pid]) => [name, cpuMsOf(pid)])),
      memory: () => memoryOf(pids),
      stop: async () => {
        await nc.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startUp({ mode, upstreamUrl, nodeArgs = [] }: BenchFleetOptions, home: string, port: number): ChildProcess {
  const main = join(repositoryRoot, "services", "cli", "src", "main.ts");
  const args = [...nodeArgs, main, "up", "--json", ...(mode === "split" ? ["--split"] : [])];
  const { PATH, HOME } = process.env;
  return spawn(process.execPath, args, {
    env: {
      PATH,
      HOME,
      FLOTILLA_HOME: home,
      FLOTILLA_PORT: String(port),
      OPENAI_BASE_URL: upstreamUrl,
      OPENAI_API_KEY: "measured-not-secret",
      FLOTILLA_DEFAULT_PROVIDER: "scripted",
      FLOTILLA_DEFAULT_MODEL: "demo",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
}

async function isReady(url: string): Promise<boolean> {
  return (await fetch(`${url}/readyz`)).status === 200;
}

/** `flotilla` and `composite-0` are the same process: counted once. */
function entryOf(name: string, pid: number | null): [string, number][] {
  return pid === null || name === "composite-0" ? [] : [[name, pid]];
}

async function connectOperator(home: string): Promise<NatsConnection> {
  const { servers, user, password } = parseNatsUrl((await readFile(join(home, "run", "nats.url"), "utf8")).trim());
  return connect({
    servers,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
  });
}

function memoryOf(pids: ReadonlyMap<string, number>): ReturnType<BenchFleet["memory"]> {
  const mib = (bytes: number): number => rounded(bytes / 2 ** 20);
  const byProcess = Object.fromEntries([...pids].map(([name, pid]) => [name, mib(residentBytesOf(pid))]));
  return {
    processes: pids.size,
    residentMiB: rounded(sum(Object.values(byProcess))),
    proportionalMiB: mib(sum([...pids.values()].map(proportionalBytesOf))),
    byProcess,
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  await exited;
  clearTimeout(timer);
}
