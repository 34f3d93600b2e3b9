// One server process of a test: found, started, killed and started again on the same port and store.
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { until } from "./until.ts";

const running = new Set<ChildProcess>();
let isHooked = false;

/** The binary on PATH, else in `<repo>/.tools/bin`; null when it is in neither. */
export function findBinary(name: string): string | null {
  const local = join(import.meta.dirname, "../../../.tools/bin");
  const folders = [...(process.env.PATH ?? "").split(delimiter), local];
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}

export interface TestServer {
  readonly pid: number;
  /** Sends the signal; resolves when the process has ended (SIGSTOP: is stopped; SIGCONT: at once). */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Ends it when it runs, and starts it again on the same port and store. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface ServerCommand {
  readonly binary: string;
  readonly args: readonly string[];
  readonly what: string;
  /** Throws or answers false until the server can be used. */
  isReady(): Promise<boolean>;
}

export async function startServer(command: ServerCommand): Promise<TestServer> {
  let child = await launch(command);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (hasEnded(child)) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  };
  return {
    get pid() {
      return child.pid ?? 0;
    },
    async kill(signal) {
      if (signal !== "SIGSTOP" && signal !== "SIGCONT") return end(signal);
      child.kill(signal);
      if (signal === "SIGSTOP") await until(() => isStopped(child.pid ?? 0), { what: `${command.what} is stopped` });
    },
    async restart() {
      await end("SIGKILL");
      child = await launch(command);
    },
    stop: () => end("SIGKILL"),
  };
}

async function launch(command: ServerCommand): Promise<ChildProcess> {
  hookExit();
  const child = spawn(command.binary, [...command.args], { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let output = "";
  const collect = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-4_000);
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  child.once("exit", () => running.delete(child));
  const failed = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${command.what} ended with code ${code}: ${output}`)));
  });
  const ready = until(() => command.isReady(), { what: `${command.what} answers`, timeoutMs: 20_000 });
  // Whichever loses the race must not become an unhandled rejection later.
  for (const loser of [failed, ready]) loser.catch(() => undefined);
  await Promise.race([ready, failed]);
  return child;
}

/** A stop reaches the threads of a process one by one. Where there is no /proc, nobody can tell. */
function isStopped(pid: number): boolean {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.every((task) => /\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8")));
  } catch {
    return true;
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Servers never outlive the test process. */
function hookExit(): void {
  if (isHooked) return;
  isHooked = true;
  const killAll = (): void => {
    for (const child of running) child.kill("SIGKILL");
  };
  process.once("exit", killAll);
  const signals = [
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const;
  for (const [signal, code] of signals) {
    process.once(signal, () => {
      killAll();
      process.exit(code);
    });
  }
}
