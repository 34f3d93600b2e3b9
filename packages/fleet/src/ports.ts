// TCP ports of this machine: free ones, taken ones, and whether somebody listens.
import { createConnection, createServer } from "node:net";
import { FleetError } from "./fleet-error.ts";

const loopback = "127.0.0.1";

/** A port that nobody uses now. */
export async function freePort(): Promise<number> {
  const port = await tryListen(0, loopback);
  if (port === null) throw new FleetError("the system gave no free port");
  return port;
}

/** The first of `count` neighbouring ports that nobody uses now. */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const first = await freePort();
    if (first + count > 65_535) continue;
    const rest = Array.from({ length: count - 1 }, (_, index) => tryListen(first + index + 1, loopback));
    if ((await Promise.all(rest)).every((port) => port !== null)) return first;
  }
  throw new FleetError(`there are no ${count} neighbouring free ports`);
}

export async function requireFreePort(port: number, host: string): Promise<void> {
  if ((await tryListen(port, host)) !== null) return;
  throw new FleetError(
    `port ${port} is in use by another program; set FLOTILLA_PORT to a free one, for example: FLOTILLA_PORT=${port + 100} make up`,
  );
}

export function isListening(port: number, host: string = loopback): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host, timeout: 2_000 });
    const answer = (isOpen: boolean) => () => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", answer(true));
    socket.once("timeout", answer(false));
    socket.once("error", answer(false));
  });
}

function tryListen(port: number, host: string): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(null);
      else reject(error);
    });
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => resolve(address === null || typeof address === "string" ? null : address.port));
    });
  });
}
