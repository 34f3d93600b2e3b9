// The first connection to NATS: waits for an absent server and says so, refuses a wrong login or server at once.
import { FlotillaError } from "@flotilla/errors";
import { type ConnectionOptions, connect, type NatsConnection, errors as natsErrors } from "@nats-io/transport-node";
import { pause } from "./patience.ts";
import { isMissingStreams, verifyStreams } from "./streams.ts";
import type { BusOptions } from "./types.ts";

const minPayloadBytes = 2 * 1024 * 1024;
const noticeMs = 5_000;
const attemptMs = 2_000;
/** Below the two minutes after which a start has to have failed, so that there is time left to say so. */
const defaultConnectTimeoutMs = 110_000;

export interface Connected {
  readonly nc: NatsConnection;
  /** Number of turn-step shards. */
  readonly shards: number;
}

/** Resolves when the server is there, is good enough, and has the fleet's streams. */
export async function connectNats(options: BusOptions): Promise<Connected> {
  const { servers, user, password } = parseNatsUrl(options.url);
  const login = options.user === undefined ? { user, pass: password } : { user: options.user, pass: options.password };
  const address = servers.join(", ");
  const config: ConnectionOptions = {
    servers,
    name: options.worker,
    inboxPrefix: `_INBOX_${options.worker}`,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 100,
    // A frozen server is noticed within 15 s.
    pingInterval: 5_000,
    maxPingOut: 2,
    timeout: attemptMs,
    // A login that is being rotated comes back; until then the worker is not ready.
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    ...(login.user === undefined ? {} : { user: login.user }),
    ...(login.pass === undefined ? {} : { pass: login.pass }),
  };
  const waiting = new Waiting(options, address);
  const nc = await waitForServer(config, address, options.worker, waiting);
  try {
    checkServer(nc, address);
    return { nc, shards: await waitForStreams(nc, options.shards, waiting) };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

/** One deadline for everything that is waited for, and a notice every few seconds. */
class Waiting {
  readonly #options: BusOptions;
  readonly #giveUpAt: number;
  readonly #address: string;
  #noticedAt = 0;

  constructor(options: BusOptions, address: string) {
    this.#options = options;
    this.#address = address;
    this.#giveUpAt = Date.now() + (options.connectTimeoutMs ?? defaultConnectTimeoutMs);
  }

  get left(): number {
    return this.#giveUpAt - Date.now();
  }

  async again(what: string): Promise<void> {
    if (Date.now() - this.#noticedAt >= noticeMs) {
      this.#noticedAt = Date.now();
      this.#options.logger.warn(`waiting for ${what} at ${this.#address}`, { worker: this.#options.worker });
    }
    await pause(Math.max(1, Math.min(250, this.left)));
  }
}

async function waitForServer(
  config: ConnectionOptions,
  address: string,
  worker: string,
  waiting: Waiting,
): Promise<NatsConnection> {
  for (;;) {
    try {
      return await connect({ ...config, timeout: Math.max(100, Math.min(attemptMs, waiting.left)) });
    } catch (cause) {
      if (cause instanceof natsErrors.AuthorizationError) {
        const message = `NATS at ${address} refused the login of ${worker}; check its user and password`;
        throw new FlotillaError("BUS_PERMISSION", message, { cause });
      }
      if (waiting.left <= 0) {
        throw new FlotillaError("BUS_UNAVAILABLE", `NATS at ${address} is not reachable`, { cause });
      }
      await waiting.again("NATS");
    }
  }
}

/** The streams are created by whoever starts the fleet, perhaps after this worker has been started. */
async function waitForStreams(nc: NatsConnection, asked: number | undefined, waiting: Waiting): Promise<number> {
  for (;;) {
    try {
      return await verifyStreams(nc, asked);
    } catch (error) {
      const isFinal = error instanceof FlotillaError && !isMissingStreams(error);
      if (isFinal || waiting.left <= 0) throw error;
      await waiting.again("the streams");
    }
  }
}

function checkServer(nc: NatsConnection, address: string): void {
  const { version = "0.0.0", max_payload: maxPayload = 0 } = nc.info ?? {};
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < 2 || (major === 2 && minor < 12)) {
    throw new FlotillaError("CONFIG_INVALID", `nats-server 2.12 or newer is needed; ${address} runs ${version}`);
  }
  if (maxPayload < minPayloadBytes) {
    const message = `max_payload of NATS at ${address} is ${maxPayload} bytes; it must be at least 2 MB (set max_payload: 8MB)`;
    throw new FlotillaError("CONFIG_INVALID", message);
  }
}

/** `nats://[user:password@]host:port`, several separated by commas. */
export function parseNatsUrl(url: string): { servers: string[]; user?: string; password?: string } {
  const parts = url
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  if (parts.length === 0) throw new FlotillaError("CONFIG_INVALID", "NATS_URL is empty", { field: "NATS_URL" });
  const urls = parts.map(parseOne);
  const login = urls.find((candidate) => candidate.username !== "");
  return {
    servers: urls.map((one) => `${one.hostname}:${one.port === "" ? "4222" : one.port}`),
    ...(login === undefined
      ? {}
      : { user: decodeURIComponent(login.username), password: decodeURIComponent(login.password) }),
  };
}

function parseOne(part: string): URL {
  const text = part.includes("://") ? part : `nats://${part}`;
  const parsed = URL.canParse(text) ? new URL(text) : null;
  if (parsed === null || parsed.hostname === "") {
    // The value may hold a password, so it is not shown.
    throw new FlotillaError("CONFIG_INVALID", "NATS_URL is not like nats://host:4222", { field: "NATS_URL" });
  }
  return parsed;
}
