// Whether the connection is up, and how to wait for it.
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { NatsConnection, Status } from "@nats-io/transport-node";

export class Link {
  readonly #nc: NatsConnection;
  readonly #logger: Logger;
  readonly #handlers = new Set<() => void>();
  #isUp = true;
  #connectedAt = Date.now();
  #reconnectedAt = 0;

  constructor(nc: NatsConnection, logger: Logger) {
    this.#nc = nc;
    this.#logger = logger;
    this.#follow().catch((error: unknown) => logger.error("the bus cannot be followed", { error: String(error) }));
    this.#watchEnd().catch((error: unknown) => logger.error("the bus ended badly", { error: String(error) }));
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Epoch ms of the last connect or reconnect. */
  get connectedAt(): number {
    return this.#connectedAt;
  }

  /** Epoch ms of the last reconnect; 0 before the first. */
  get reconnectedAt(): number {
    return this.#reconnectedAt;
  }

  /** Runs after every reconnect; returns the unsubscribe function. */
  onReconnect(handler: () => void): () => void {
    this.#handlers.add(handler);
    return () => {
      this.#handlers.delete(handler);
    };
  }

  /** Resolves when the connection is up; BUS_UNAVAILABLE at the deadline. */
  connected(deadline: number, signal: AbortSignal): Promise<void> {
    if (this.#isUp) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const late = (): void => {
        reject(new FlotillaError("BUS_UNAVAILABLE", "the bus is not reachable", { retryAfterMs: 1_000 }));
      };
      const timer = setTimeout(late, Math.max(0, deadline - Date.now()));
      signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
      const unsubscribe = this.onReconnect(() => {
        unsubscribe();
        clearTimeout(timer);
        resolve();
      });
      signal.addEventListener("abort", unsubscribe, { once: true });
    });
  }

  async #follow(): Promise<void> {
    for await (const status of this.#nc.status()) this.#take(status);
  }

  #take(status: Status): void {
    if (status.type === "disconnect") {
      if (this.#isUp) this.#logger.warn("the bus connection was lost", { server: status.server });
      this.#isUp = false;
    } else if (status.type === "reconnect") {
      this.#back(status.server);
    } else if (status.type === "error") {
      this.#logger.warn("the bus reported an error", { reason: status.error.message });
    } else if (status.type === "slowConsumer") {
      this.#logger.warn("a subscription does not keep up", { pending: status.pending });
    }
  }

  #back(server: string): void {
    this.#isUp = true;
    this.#connectedAt = Date.now();
    this.#reconnectedAt = this.#connectedAt;
    this.#logger.info("the bus connection is back", { server });
    for (const handler of [...this.#handlers]) {
      try {
        handler();
      } catch (error) {
        this.#logger.error("a reconnect handler failed", { error: String(error) });
      }
    }
  }

  async #watchEnd(): Promise<void> {
    const error = await this.#nc.closed();
    this.#isUp = false;
    if (error instanceof Error) this.#logger.error("the bus connection was closed for good", { reason: error.message });
  }
}
