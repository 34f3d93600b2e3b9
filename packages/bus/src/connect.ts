// One worker's connection to the bus, with everything that hangs on it.
import { FlotillaError } from "@flotilla/errors";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { createBlobs } from "./blobs.ts";
import { createCaller } from "./call.ts";
import { createClaimCheck } from "./claim-check.ts";
import { type Connected, connectNats } from "./connect-nats.ts";
import { createDeltas } from "./deltas.ts";
import { createJournal } from "./journal.ts";
import { Link } from "./link.ts";
import { createOutcomes } from "./outcomes.ts";
import { createRegistry } from "./registry.ts";
import type { Bus, BusOptions } from "./types.ts";

const requestTimeoutMs = 5_000;
const drainMs = 5_000;

/** Connects, checks the server and its streams, loads the registry. Waits for an absent server and says so. */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const connected = await connectNats(options);
  try {
    return await assemble(connected, options);
  } catch (error) {
    await connected.nc.close();
    throw error;
  }
}

async function assemble({ nc, shards }: Connected, options: BusOptions): Promise<Bus> {
  const { worker, instance, logger } = options;
  const js = jetstream(nc, { timeout: requestTimeoutMs });
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: requestTimeoutMs });
  const link = new Link(nc, logger);
  const isConnected = (): boolean => link.isUp;
  const blobs = createBlobs({ nc, js, jsm });
  const claimCheck = createClaimCheck({ nc, js, jsm });
  const registry = createRegistry({ nc, js, jsm, worker, instance, logger, isConnected, grants: options.grants ?? {} });
  const caller = createCaller({ nc, link, registry, claimCheck, worker });
  await registry.start();
  link.onReconnect(() => {
    registry.afterReconnect().catch((error: unknown) => {
      logger.warn("the registry was not refreshed after the reconnect", { reason: String(error) });
    });
  });
  let closing: Promise<void> | null = null;

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
      return link.isUp;
    },
    get reconnectedAt() {
      return link.reconnectedAt;
    },
    ping: (timeoutMs = 2_000) => ping(nc, timeoutMs),
    call: caller.call,
    callId: caller.callId,
    onReconnect: (handler) => link.onReconnect(handler),
    close() {
      closing ??= close(nc, () => registry.stop());
      return closing;
    },
  };
}

async function ping(nc: NatsConnection, timeoutMs: number): Promise<number> {
  const startedAt = performance.now();
  try {
    await within(nc.flush(), timeoutMs);
  } catch (cause) {
    throw new FlotillaError("BUS_UNAVAILABLE", "the bus did not answer in time", { cause });
  }
  return performance.now() - startedAt;
}

async function close(nc: NatsConnection, stop: () => void): Promise<void> {
  if (nc.isClosed()) return;
  stop();
  try {
    await within(nc.drain(), drainMs);
  } catch {
    // Nothing can be drained to a server that is away.
    await nc.close();
  }
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
