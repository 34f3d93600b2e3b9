// One worker's connection to the bus, with everything that hangs on it.
import { FlotillaError } from "@flotilla/errors";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type ConnectionOptions, connect, errors as natsErrors, type NatsConnection } from "@nats-io/transport-node";
import { createBlobs } from "./blobs.ts";
import { createCaller } from "./call.ts";
import { createClaimCheck } from "./claim-check.ts";
import { createDeltas } from "./deltas.ts";
import { createJournal } from "./journal.ts";
import { createOutcomes } from "./outcomes.ts";
import { createRegistry } from "./registry.ts";
import { verifyShards } from "./streams.ts";
import type { Bus, BusOptions } from "./types.ts";

const minPayloadBytes = 2 * 1024 * 1024;
const noticeMs = 5_000;

/** Connects, checks the server, loads the registry. Waits for an absent server up to `connectTimeoutMs` and says so. */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const nc = await connectNats(options);
  try {
    return await assemble(nc, options);
  } catch (error) {
    await nc.close();
    throw error;
  }
}

async function assemble(nc: NatsConnection, options: BusOptions): Promise<Bus> {
  checkServer(nc);
  const js = jetstream(nc, { timeout: 5_000 });
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: 5_000 });
  const { worker, instance, logger } = options;
  let connected = true;
  const handlers = new Set<() => void>();
  const shards = await verifyShards(nc, options.shards);
  const blobs = createBlobs(js);
  const claimCheck = createClaimCheck(nc, js);
  const registry = createRegistry({ nc, js, jsm, worker, instance, logger, grants: options.grants ?? {}, isConnected: () => connected });
  const caller = createCaller({ nc, registry, claimCheck, worker, isConnected: () => connected, reconnected });
  void followStatus();
  await registry.start();
  let closing: Promise<void> | null = null;

  function reconnected(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        handlers.delete(done);
        resolve();
      };
      handlers.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  async function followStatus(): Promise<void> {
    for await (const status of nc.status()) {
      if (status.type === "disconnect") {
        connected = false;
        logger.warn("the bus connection was lost", { server: nc.getServer() });
      } else if (status.type === "reconnect") {
        connected = true;
        logger.info("the bus connection is back", { server: nc.getServer() });
        await registry.afterReconnect();
        for (const handler of [...handlers]) handler();
      } else if (status.type === "error") {
        logger.warn("the bus reported an error", { reason: status.error.message });
      }
    }
  }

  return {
    nc,
    js,
    jsm,
    worker,
    instance,
    logger,
    registry,
    blobs,
    claimCheck,
    journal: createJournal({ nc, js, jsm, blobs, shards, logger }),
    outcomes: createOutcomes({ js, jsm }),
    deltas: createDeltas({ js, jsm }),
    get connected() {
      return connected;
    },
    async ping(timeoutMs = 2_000) {
      const startedAt = performance.now();
      await withTimeout(nc.flush(), timeoutMs, "the bus did not answer in time");
      return performance.now() - startedAt;
    },
    call: caller.call,
    callId: caller.callId,
    onReconnect(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    close() {
      closing ??= (async () => {
        registry.stop();
        await withTimeout(nc.drain(), 5_000, "the bus connection did not drain").catch(() => nc.close());
      })();
      return closing;
    },
  };
}

/** `nats://[user:password@]host:port`, several separated by commas. */
export function parseNatsUrl(url: string): { servers: string[]; user?: string; password?: string } {
  const parts = url.split(",").map((part) => part.trim()).filter((part) => part !== "");
  let login: { user?: string; password?: string } = {};
  const servers = parts.map((part) => {
    const parsed = parseOne(part);
    if (parsed.username !== "") login = { user: decodeURIComponent(parsed.username), password: decodeURIComponent(parsed.password) };
    return `${parsed.hostname}:${parsed.port === "" ? "4222" : parsed.port}`;
  });
  if (servers.length === 0) throw new FlotillaError("CONFIG_INVALID", "NATS_URL is empty", { field: "NATS_URL" });
  return { servers, ...login };
}

function parseOne(part: string): URL {
  try {
    return new URL(part.includes("://") ? part : `nats://${part}`);
  } catch (cause) {
    throw new FlotillaError("CONFIG_INVALID", "NATS_URL is not a URL like nats://host:4222", { field: "NATS_URL", cause });
  }
}

async function connectNats(options: BusOptions): Promise<NatsConnection> {
  const { servers, user, password } = parseNatsUrl(options.url);
  const login = options.user === undefined ? { user, pass: password } : { user: options.user, pass: options.password };
  const config: ConnectionOptions = {
    servers,
    name: options.worker,
    inboxPrefix: `_INBOX_${options.worker}`,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 100,
    pingInterval: 5_000,
    maxPingOut: 2,
    timeout: 2_000,
    ignoreAuthErrorAbort: true,
    ...(login.user === undefined ? {} : { user: login.user }),
    ...(login.pass === undefined ? {} : { pass: login.pass }),
  };
  return waitForServer(config, servers.join(", "), options);
}

async function waitForServer(config: ConnectionOptions, address: string, options: BusOptions): Promise<NatsConnection> {
  const giveUpAt = Date.now() + (options.connectTimeoutMs ?? 120_000);
  let noticedAt = 0;
  for (;;) {
    try {
      return await connect(config);
    } catch (cause) {
      if (cause instanceof natsErrors.AuthorizationError) {
        throw new FlotillaError("BUS_PERMISSION", `NATS at ${address} refused the login of ${options.worker}`, { cause });
      }
      if (Date.now() > giveUpAt) throw new FlotillaError("BUS_UNAVAILABLE", `NATS at ${address} is not reachable`, { cause });
      if (Date.now() - noticedAt > noticeMs) {
        noticedAt = Date.now();
        options.logger.warn(`waiting for NATS at ${address}`, { worker: options.worker });
      }
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

function checkServer(nc: NatsConnection): void {
  const version = nc.info?.version ?? "0.0.0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < 2 || (major === 2 && minor < 12)) {
    throw new FlotillaError("CONFIG_INVALID", `nats-server 2.12 or newer is needed, this is ${version}`);
  }
  if ((nc.info?.max_payload ?? 0) < minPayloadBytes) {
    throw new FlotillaError("CONFIG_INVALID", "nats-server's max_payload must be at least 2 MB; set max_payload: 8MB");
  }
}

async function withTimeout<T>(promise: Promise<T>, ms: number, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new FlotillaError("BUS_UNAVAILABLE", message)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

