// A real redis-server for a test.
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinary, freePort, startServer, type TestServer } from "./child-server.ts";
import { startRedisContainer } from "./server-container.ts";

export interface StartedRedis extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** @default "SIGKILL" */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** On the same port and store (append-only file); a test that wants it empty sends FLUSHALL. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<StartedRedis> {
  const folder = await mkdtemp(join(tmpdir(), "flotilla-redis-"));
  const { server, port } = await launchOnFreePort(folder);
  const stop = async (): Promise<void> => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid;
    },
    kill: (signal = "SIGKILL") => server.kill(signal),
    restart: () => server.restart(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function launchOnFreePort(folder: string): Promise<{ server: TestServer; port: number }> {
  const binary = findBinary("redis-server");
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    const isReady = (): Promise<boolean> => answersPing(port);
    const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "yes"];
    try {
      if (binary === null) return { server: await startRedisContainer(port, isReady), port };
      return { server: await startServer({ binary, args, what: "redis-server", isReady }), port };
    } catch (error) {
      if (tries === 3) throw error;
    }
  }
}

/** False while the server still loads its data. */
function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.setTimeout(1_000, () => socket.destroy(new Error("no answer to PING")));
    socket.once("error", reject);
    socket.once("data", (data) => {
      socket.destroy();
      resolve(data.toString().startsWith("+PONG"));
    });
  });
}
