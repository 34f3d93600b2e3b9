// Servers that are not the fleet's own: waited for, with a word about it, and not for ever.
import { parseNatsUrl } from "@flotilla/bus";
import { connect, type NatsConnection, errors as natsErrors } from "@nats-io/transport-node";
import { FleetError } from "./fleet-error.ts";
import { isListening } from "./ports.ts";

export interface WaitOptions {
  readonly report: (line: string) => void;
  /** @default 60000 */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const defaultTimeoutMs = 60_000;
const noticeMs = 10_000;
const pauseMs = 250;

/** Connects with the login in the URL; names the address, never the password, when it fails. */
export async function connectNats(url: string, options: WaitOptions): Promise<NatsConnection> {
  const { servers, user, password } = parseNatsUrl(url);
  const login = user === undefined ? {} : { user, pass: password ?? "" };
  const address = servers.join(", ");
  return waitFor(`NATS at ${address}`, options, async () => {
    try {
      return await connect({ servers, ...login, name: "flotilla-up", timeout: 2_000, reconnect: false });
    } catch (error) {
      if (!(error instanceof natsErrors.AuthorizationError)) return null;
      throw new FleetError(`NATS at ${address} refused the login of NATS_URL`, { cause: error });
    }
  });
}

export async function waitForRedis(url: string, options: WaitOptions): Promise<void> {
  const { hostname, port } = redisAddress(url);
  await waitFor(`Redis at ${hostname}:${port}`, options, async () =>
    (await isListening(port, hostname)) ? true : null,
  );
}

function redisAddress(url: string): { hostname: string; port: number } {
  if (!URL.canParse(url)) {
    throw new FleetError("REDIS_URL is not a URL like redis://host:6379", { exitCode: 78 });
  }
  const { hostname, port } = new URL(url);
  return { hostname, port: port === "" ? 6379 : Number(port) };
}

async function waitFor<T>(what: string, options: WaitOptions, attempt: () => Promise<T | null>): Promise<T> {
  const startedAt = Date.now();
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  let noticedAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    const result = await attempt();
    if (result !== null) return result;
    if (options.signal?.aborted === true) throw new FleetError(`gave up waiting for ${what}`);
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > timeoutMs) {
      throw new FleetError(`${what} is not reachable; gave up after ${Math.round(waitedMs / 1000)} s`);
    }
    if (waitedMs - noticedAt > noticeMs) {
      noticedAt = waitedMs;
      options.report(`waiting for ${what} (up to ${Math.round(timeoutMs / 1000)} s)`);
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
