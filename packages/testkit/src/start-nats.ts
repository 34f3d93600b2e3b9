// A real nats-server for a test, with the fleet's users, limits and streams.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Credentials, ensureStreams, generateCredentials, operatorUser, renderNatsConfig } from "@flotilla/bus";
import { connect } from "@nats-io/transport-node";
import { findBinary, freePort, startServer, type TestServer } from "./child-server.ts";
import { startNatsContainer } from "./server-container.ts";

/** Every worker that a test fleet may run. */
export const fleetWorkers = [
  "harness",
  "policy",
  "turn-orchestrator",
  "approval-gate",
  "session",
  "auth-credentials",
  "models-catalog",
  "provider-anthropic",
  "provider-openai",
  "provider-scripted",
  "demo",
] as const;

export interface StartNatsOptions {
  /** More bus users, besides those of the fleet's workers. */
  readonly workers?: readonly string[];
  /** @default 1 */
  readonly shards?: number;
  /** @default true */
  readonly withStreams?: boolean;
}

export interface StartedNats extends AsyncDisposable {
  /** With the operator's login. */
  readonly url: string;
  /** Without a login. */
  readonly address: string;
  readonly port: number;
  readonly pid: number;
  readonly credentials: Credentials;
  readonly credentialsFile: string;
  urlFor(worker: string): string;
  /** @default "SIGKILL" */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** On the same port and store. */
  restart(): Promise<void>;
  /** SIGSTOP and SIGCONT: a frozen server. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  stop(): Promise<void>;
}

export async function startNats(options: StartNatsOptions = {}): Promise<StartedNats> {
  const folder = await mkdtemp(join(tmpdir(), "flotilla-nats-"));
  const credentials = generateCredentials([...fleetWorkers, ...(options.workers ?? [])]);
  const credentialsFile = join(folder, "credentials.json");
  await writeFile(credentialsFile, JSON.stringify(credentials), { mode: 0o600 });
  const { server, port } = await launchOnFreePort(folder, credentials, options.shards ?? 1);
  const urlFor = (worker: string): string =>
    `nats://${worker}:${credentials[worker]?.password ?? ""}@127.0.0.1:${port}`;
  if (options.withStreams !== false) await createStreams(port, credentials, options.shards ?? 1);
  const stop = async (): Promise<void> => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return {
    url: urlFor(operatorUser),
    address: `nats://127.0.0.1:${port}`,
    port,
    credentials,
    credentialsFile,
    urlFor,
    get pid() {
      return server.pid;
    },
    kill: (signal = "SIGKILL") => server.kill(signal),
    restart: () => server.restart(),
    freeze: () => server.kill("SIGSTOP"),
    thaw: () => server.kill("SIGCONT"),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Another process may take the port between the choice and the start, so a failed start is tried on another one. */
async function launchOnFreePort(
  folder: string,
  credentials: Credentials,
  shards: number,
): Promise<{ server: TestServer; port: number }> {
  const binary = findBinary("nats-server");
  const config = join(folder, "nats.conf");
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    const isReady = (): Promise<boolean> => answers(port, credentials);
    const base = { credentials, shards };
    try {
      if (binary === null) return { server: await startNatsContainer(base, port, isReady), port };
      await writeFile(config, renderNatsConfig({ ...base, port, storeDir: join(folder, "store") }), { mode: 0o600 });
      return { server: await startServer({ binary, args: ["-c", config], what: "nats-server", isReady }), port };
    } catch (error) {
      if (tries === 3) throw error;
    }
  }
}

async function answers(port: number, credentials: Credentials): Promise<boolean> {
  const nc = await connectOperator(port, credentials);
  try {
    await nc.request("$JS.API.INFO", "", { timeout: 1_000 });
    return true;
  } finally {
    await nc.close();
  }
}

async function createStreams(port: number, credentials: Credentials, shards: number): Promise<void> {
  const nc = await connectOperator(port, credentials);
  try {
    await ensureStreams(nc, { shards });
  } finally {
    await nc.close();
  }
}

function connectOperator(port: number, credentials: Credentials): ReturnType<typeof connect> {
  const login = credentials[operatorUser];
  if (login === undefined) throw new Error("the operator has no login");
  const servers = `127.0.0.1:${port}`;
  return connect({ servers, user: login.user, pass: login.password, reconnect: false, timeout: 2_000 });
}
