// One SSE response: events as text with back-pressure, comments as heartbeat, closed when its reader falls behind.
import type { ServerResponse } from "node:http";
import type { SentEvent } from "../domain/session-stream.ts";
import type { Sink } from "../ports.ts";

export interface SseOptions {
  readonly heartbeatMs: number;
  /** Unsent bytes at which sending pauses until the reader has taken them. */
  readonly pauseBytes: number;
  /** A reader that takes nothing for this long is closed. @default 60000 */
  readonly stallMs?: number;
}

const retryMs = 500;

export class SseConnection implements Sink {
  readonly #raw: ServerResponse;
  readonly #options: SseOptions;
  readonly #heartbeat: NodeJS.Timeout;

  constructor(raw: ServerResponse, options: SseOptions, headers: Readonly<Record<string, string>> = {}) {
    this.#raw = raw;
    this.#options = options;
    raw.writeHead(200, {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      connection: "keep-alive",
      // nginx buffers responses unless told otherwise.
      "x-accel-buffering": "no",
    });
    raw.socket?.setNoDelay(true);
    raw.socket?.setKeepAlive(true);
    raw.write(`retry: ${retryMs}\n: open\n\n`);
    this.#heartbeat = setInterval(() => {
      if (this.#isOpen && raw.writableLength < options.pauseBytes) raw.write(": heartbeat\n\n");
    }, options.heartbeatMs);
    raw.once("close", () => clearInterval(this.#heartbeat));
    // A reset by the reader; `close` follows and ends the stream.
    raw.once("error", () => raw.destroy());
  }

  get #isOpen(): boolean {
    return !this.#raw.destroyed && !this.#raw.writableEnded;
  }

  async send(events: readonly SentEvent[]): Promise<void> {
    for (const { id, event } of events) {
      if (!this.#isOpen) return;
      this.#raw.write(`id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      if (this.#raw.writableLength > this.#options.pauseBytes) await this.#drained();
    }
  }

  fail(reason: string): void {
    if (this.#isOpen) this.#raw.write(`: ${reason}\n\n`);
    this.#raw.destroy();
  }

  /** Ends the response; its reader comes back with its position. */
  end(): void {
    this.#raw.end();
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(stall);
        this.#raw.off("drain", done);
        this.#raw.off("close", done);
        resolve();
      };
      const stall = setTimeout(() => this.#raw.destroy(), this.#options.stallMs ?? 60_000);
      this.#raw.on("drain", done);
      this.#raw.on("close", done);
    });
  }
}
