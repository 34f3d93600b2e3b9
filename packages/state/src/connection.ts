// One Redis connection that never ends by itself and never makes a caller wait for it (I7: nothing waits for Redis).
//
// field: taskforcesh/bullmq#4378, redis/ioredis#1835: after a failover a client sat in a terminal state or on a silent
// socket. So: bounded commands, a silent socket is torn down, READONLY reconnects, an ended client is started again.
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import { Redis } from "ioredis";

export interface ConnectionOptions {
  readonly url: string;
  readonly logger: Logger;
  /** @default 2000 */
  readonly commandTimeoutMs?: number | undefined;
}

const pulseMs = 2_000;
const silentSocketMs = 5_000;
const closeMs = 1_000;

export interface Connection {
  readonly redis: Redis;
  readonly isReady: boolean;
  /** Runs one command; whatever goes wrong is STORE_UNAVAILABLE, because the projection can always be asked again. */
  run<T>(command: (redis: Redis) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export function openConnection(options: ConnectionOptions): Connection {
  const { logger } = options;
  const redis = new Redis(options.url, {
    protocol: 2,
    commandTimeout: options.commandTimeoutMs ?? 2_000,
    connectTimeout: 5_000,
    socketTimeout: silentSocketMs,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 10), 1_000),
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
    // Fail fast: nothing is kept for later, and nothing that was on the wire is sent a second time behind our back.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  });
  let isClosing = false;
  let isKnownDown = false;
  redis.on("error", (error: Error) => {
    if (!isKnownDown) logger.warn("redis is not reachable", { error: error.message });
    isKnownDown = true;
  });
  redis.on("ready", () => {
    if (isKnownDown) logger.info("redis is reachable again");
    isKnownDown = false;
  });
  const pulse = setInterval(() => {
    if (isClosing) return;
    const beat = redis.status === "end" ? redis.connect() : redis.status === "ready" ? redis.ping() : null;
    beat?.catch((error: unknown) => logger.debug("redis did not answer a pulse", { error: String(error) }));
  }, pulseMs);
  pulse.unref();
  return {
    redis,
    get isReady() {
      return redis.status === "ready";
    },
    async run(command) {
      try {
        return await command(redis);
      } catch (error) {
        throw new FlotillaError("STORE_UNAVAILABLE", describe(error), { cause: error, retryAfterMs: 1_000 });
      }
    },
    async close() {
      isClosing = true;
      clearInterval(pulse);
      await endOf(redis);
    },
  };
}

/** Between two attempts to connect there is nothing that could end; a socket that never ends is left to its time-out. */
async function endOf(redis: Redis): Promise<void> {
  if (redis.status === "end") return;
  const hasSocket = redis.status !== "reconnecting";
  await new Promise<void>((resolve) => {
    redis.once("end", () => resolve());
    redis.disconnect();
    if (hasSocket) setTimeout(resolve, closeMs).unref();
    else resolve();
  });
}

/** A reply of Redis begins with its own code (`READONLY`, `OOM`, …), which is safe to show. */
function describe(error: unknown): string {
  const code = error instanceof Error && error.name === "ReplyError" ? /^[A-Z]+/.exec(error.message)?.[0] : undefined;
  return code === undefined ? "redis does not answer" : `redis refused: ${code}`;
}
