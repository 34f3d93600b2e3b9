// The fleet's own NATS and Redis: configured under the home, kept alive on one port.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Credentials, generateCredentials, operatorUser, renderNatsConfig } from "@flotilla/bus";
import { describeExit } from "./child.ts";
import { FleetError } from "./fleet-error.ts";
import { type KeptProcess, keepProcess } from "./kept-process.ts";
import { freePort, isListening } from "./ports.ts";
import type { RunDirectory } from "./run-directory.ts";
import { type ServerRequest, serverProgram } from "./server-program.ts";

export interface ServerOptions {
  readonly home: string;
  readonly runDir: RunDirectory;
  readonly report: (line: string) => void;
}

export interface OwnNats {
  /** With the operator's login. */
  readonly url: string;
  /** Without a login. */
  readonly address: string;
  readonly credentialsFile: string;
  readonly process: KeptProcess;
}

export interface OwnRedis {
  readonly url: string;
  readonly process: KeptProcess;
}

const listenTimeoutMs = 20_000;

export async function startOwnNats(
  options: ServerOptions & { workers: readonly string[]; shards: number },
): Promise<OwnNats> {
  const folder = join(options.home, "nats");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const credentialsFile = join(folder, "credentials.json");
  const configFile = join(folder, "nats.conf");
  const credentials = keptCredentials(credentialsFile, options.workers);
  const port = await freePort();
  const config = renderNatsConfig({ port, storeDir: join(folder, "store"), credentials, shards: options.shards });
  writeFileSync(configFile, config, { mode: 0o600 });
  const program = {
    name: "nats-server",
    minimum: [2, 12],
    image: "nats:2.15-alpine",
    args: ["-c", configFile],
  } as const;
  const kept = await startServer(options, { ...program, openArgs: ["-a", "0.0.0.0"], port, folder });
  const login = credentials[operatorUser];
  return {
    url: `nats://${operatorUser}:${login?.password ?? ""}@127.0.0.1:${port}`,
    address: `nats://127.0.0.1:${port}`,
    credentialsFile,
    process: kept,
  };
}

/** The logins of the last start, so that workers outside of this fleet keep theirs, and new ones for new workers. */
function keptCredentials(file: string, workers: readonly string[]): Credentials {
  const earlier = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Credentials) : {};
  const credentials = { ...generateCredentials(workers), ...earlier };
  writeFileSync(file, JSON.stringify(credentials, null, 2), { mode: 0o600 });
  return credentials;
}

export async function startOwnRedis(options: ServerOptions): Promise<OwnRedis> {
  const folder = join(options.home, "redis");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const port = await freePort();
  // Only a projection lives here, so nothing is written to disk.
  const storage = ["--save", "", "--appendonly", "no", "--dir", folder];
  const args = ["--port", String(port), "--bind", "127.0.0.1", ...storage, "--loglevel", "warning"];
  const program = { name: "redis-server", minimum: [6, 2], image: "redis:7-alpine", args } as const;
  const openArgs = ["--bind", "0.0.0.0", "--protected-mode", "no"];
  const kept = await startServer(options, { ...program, openArgs, port, folder });
  return { url: `redis://127.0.0.1:${port}`, process: kept };
}

async function startServer(options: ServerOptions, request: ServerRequest): Promise<KeptProcess> {
  const { command, args, prepare } = await serverProgram(request);
  const logs = join(options.home, "logs");
  mkdirSync(logs, { recursive: true });
  const name = request.name === "nats-server" ? "nats" : "redis";
  const output = join(logs, `${name}.log`);
  const kept = await keepProcess({
    name,
    spec: { command, args, output, env: { PATH: process.env.PATH, HOME: process.env.HOME } },
    runDir: options.runDir,
    isRestarted: true,
    report: options.report,
    ...(prepare === undefined ? {} : { prepare }),
  });
  await waitUntilListening(kept, request.port, output);
  return kept;
}

async function waitUntilListening(kept: KeptProcess, port: number, logFile: string): Promise<void> {
  const giveUpAt = Date.now() + listenTimeoutMs;
  while (!(await isListening(port))) {
    const exit = kept.lastExit();
    if (exit !== null || Date.now() > giveUpAt) {
      await kept.stop(0);
      const reason = exit === null ? `does not listen on port ${port}` : `ended with ${describeExit(exit)}`;
      throw new FleetError(`${kept.name} ${reason}; see ${logFile}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
