// An SSE client that resumes: the last id it saw goes with every reconnect, to the next harness in the list.
import type { Json } from "../fleet/client.ts";

export interface SseEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Json;
}

export class SseReader implements AsyncIterable<SseEvent> {
  readonly seen: SseEvent[] = [];
  readonly #urls: readonly string[];
  readonly #path: string;
  readonly #stop = new AbortController();
  #next: number;

  constructor(urls: readonly string[], path: string, first = 0) {
    this.#urls = urls;
    this.#path = path;
    this.#next = first;
  }

  stop(): void {
    this.#stop.abort();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<SseEvent> {
    while (!this.#stop.signal.aborted) {
      try {
        for await (const event of this.#connect()) {
          this.seen.push(event);
          yield event;
        }
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if (
          !(
            error instanceof TypeError ||
            (error instanceof Error && /terminated|refused|closed|reset/i.test(String(error.cause ?? error)))
          )
        )
          throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async *#connect(): AsyncGenerator<SseEvent> {
    const url = this.#urls[this.#next++ % this.#urls.length] ?? "";
    const last = this.seen.at(-1)?.id;
    const response = await fetch(`${url}${this.#path}`, {
      headers: last === undefined ? {} : { "last-event-id": last },
      signal: this.#stop.signal,
    });
    if (!response.ok || response.body === null) throw new TypeError(`events answered ${response.status}`);
    let buffer = "";
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      buffer += chunk;
      for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
        const event = parse(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
        if (event !== null) yield event;
      }
    }
  }
}

function parse(block: string): SseEvent | null {
  const fields: Record<string, string> = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  if (fields.data === undefined) return null;
  const data = JSON.parse(fields.data) as Json;
  return { id: fields.id ?? "", type: fields.event ?? String(data.type), data };
}
