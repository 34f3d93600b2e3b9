// Whether the connection is up, and how to wait for it.
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { NatsConnection } from "@nats-io/transport-node";

export interface Link {
  readonly isUp: boolean;
  /** Epoch ms of the last connect or reconnect. */
  readonly connectedAt: number;
  /** Resolves when the connection is up; BUS_UNAVAILABLE at the deadline. */
  connected(deadline: number, signal: AbortSignal): Promise<void>;
  /** Resolves after the next reconnect; never when the signal aborts before. */
  reconnected(signal: AbortSignal): Promise<void>;
  /** Runs after every reconnect; returns the unsubscribe function. */
  onReconnect(handler: () => void): () => void;
}

export function createLink(nc: NatsConnection, logger: Logger): Link {
  const handlers = new Set<() => void>();
  let isUp = true;
  let connectedAt = Date.now();

  const onReconnect = (handler: () => void): (() => void) => {
    handlers.add(handler);
    return () => {
      handlers.delete(handler);
    };
  };

  const back = (): void => {
    isUp = true;
    connectedAt = Date.now();
    logger.info("the bus connection is back", { server: nc.getServer() });
    for (const handler of [...handlers]) {
      try {
        handler();
      } catch (error) {
        logger.error("a reconnect handler failed", { error: String(error) });
      }
    }
  };

  const follow = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect") {
        if (isUp) logger.warn("the bus connection was lost", { server: status.server });
        isUp = false;
      } else if (status.type === "reconnect") back();
      else if (status.type === "error") logger.warn("the bus reported an error", { reason: status.error.message });
      else if (status.type === "slowConsumer")
        logger.warn("a subscription does not keep up", { pending: status.pending });
    }
  };
  follow().catch((error: unknown) => logger.error("the bus status cannot be followed", { error: String(error) }));
  nc.closed()
    .then((error) => {
      isUp = false;
      if (error instanceof Error) logger.error("the bus connection was closed for good", { reason: error.message });
    })
    .catch((error: unknown) => logger.error("the bus connection ended badly", { error: String(error) }));

  const once = (signal: AbortSignal, handler: () => void): void => {
    const unsubscribe = onReconnect(() => {
      unsubscribe();
      handler();
    });
    signal.addEventListener("abort", unsubscribe, { once: true });
  };

  return {
    get isUp() {
      return isUp;
    },
    get connectedAt() {
      return connectedAt;
    },
    connected(deadline, signal) {
      if (isUp) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const late = (): void =>
          reject(new FlotillaError("BUS_UNAVAILABLE", "the bus is not reachable", { retryAfterMs: 1_000 }));
        const timer = setTimeout(late, Math.max(0, deadline - Date.now()));
        signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
        once(signal, () => {
          clearTimeout(timer);
          resolve();
        });
      });
    },
    reconnected: (signal) => new Promise((resolve) => once(signal, resolve)),
    onReconnect,
  };
}
