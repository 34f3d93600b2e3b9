// Fired timers become inputs of their session, once each; acknowledged after the input is durable.
import { consumerNames, streamNames, type TimerBody } from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import type { EngineDeps } from "./types.ts";

export class Timers {
  readonly #deps: EngineDeps;
  #pull: ConsumerMessages | null = null;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    const consumer = await this.#deps.bus.js.consumers.get(streamNames.timer, consumerNames.timerFire);
    this.#pull = await consumer.consume({
      max_messages: 64,
      expires: 5_000,
      idle_heartbeat: 1_000,
      callback: (message) => void this.#fire(message),
    });
  }

  stop(): void {
    this.#pull?.stop();
    this.#pull = null;
  }

  async #fire(message: JsMsg): Promise<void> {
    try {
      const [, sessionId = "", name = ""] = message.subject.split(".");
      const body = message.json<TimerBody>();
      await this.#deps.bus.journal.publishInput(sessionId, "timer", name, { name, due_at: body.due_at });
      message.ack();
    } catch (cause) {
      this.#deps.logger.warn("a fired timer was given back", { code: ensureFlotillaError(cause).code });
      message.nak(1_000);
    }
  }
}
