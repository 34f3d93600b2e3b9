// An SSE client for tests that checks what it gets: ids strictly ordered, text of a message without gap and overlap.
import type { WireEvent } from "@flotilla/contracts";
import { comparePositions, parsePosition } from "../src/domain/position.ts";

export interface Received {
  readonly id: string;
  readonly event: WireEvent;
}

export class SseClient {
  readonly received: Received[] = [];
  readonly comments: string[] = [];
  readonly text = new Map<string, string[]>();
  readonly #url: string;
  readonly #headers: Record<string, string>;
  #abort = new AbortController();
  #reading: Promise<void> = Promise.resolve();
  #wake: () => void = () => {};
  #isOpen = false;

  constructor(url: string, headers: Record<string, string> = {}) {
    this.#url = url;
    this.#headers = headers;
  }

  get lastId(): string | null {
    return this.received.at(-1)?.id ?? null;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  types(): string[] {
    return this.received.map(({ event }) => event.type);
  }

  textOf(messageId: string): string {
    return (this.text.get(messageId) ?? []).join("");
  }

  /** Connects; resumes with the last id unless told otherwise. */
  async connect(options: { base?: string; lastEventId?: string | null } = {}): Promise<Response> {
    this.#abort = new AbortController();
    const { base = this.#url, lastEventId = this.lastId } = options;
    const headers = { ...this.#headers, ...(lastEventId === null ? {} : { "last-event-id": lastEventId }) };
    const response = await fetch(base, { headers, signal: this.#abort.signal });
    if (!response.ok || response.body === null) return response;
    this.#isOpen = true;
    this.#reading = this.#read(response.body);
    return response;
  }

  async disconnect(): Promise<void> {
    this.#abort.abort();
    await this.#reading;
  }

  /** Resolves once `check` holds; rejects after `timeoutMs`. */
  async until(check: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
    const giveUpAt = Date.now() + timeoutMs;
    while (!check()) {
      const left = giveUpAt - Date.now();
      if (left <= 0) throw new Error(`not within ${timeoutMs} ms: ${what}; got ${this.types().join(" ")}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  seen(type: WireEvent["type"], timeoutMs?: number): Promise<void> {
    return this.until(() => this.types().includes(type), `event ${type}`, timeoutMs);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of body) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
        rest = parts.pop() ?? "";
        for (const part of parts) this.#take(part);
        this.#wake();
      }
    } catch (error) {
      if (!this.#abort.signal.aborted && !(error instanceof TypeError)) throw error;
    } finally {
      this.#isOpen = false;
      this.#wake();
    }
  }

  #take(part: string): void {
    const lines = part.split("\n");
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    this.comments.push(...lines.filter((line) => line.startsWith(":")));
    const [id, data, type] = [field("id"), field("data"), field("event")];
    if (id === undefined || data === undefined) return;
    const event = JSON.parse(data) as WireEvent;
    if (event.type !== type) throw new Error(`event ${type} carries type ${event.type}`);
    const before = this.lastId;
    if (
      before !== null &&
      event.type !== "snapshot" &&
      comparePositions(parsePosition(before), parsePosition(id)) >= 0
    ) {
      throw new Error(`id ${id} does not come after ${before}`);
    }
    if (event.type === "message_update") this.#append(event);
    this.received.push({ id, event });
  }

  #append(event: Extract<WireEvent, { type: "message_update" }>): void {
    const blocks = this.text.get(event.message_id) ?? [];
    const known = blocks[event.index] ?? "";
    if (known.length !== event.offset) throw new Error(`offset ${event.offset} after ${known.length} units`);
    blocks[event.index] = known + event.delta;
    this.text.set(event.message_id, blocks);
  }
}
