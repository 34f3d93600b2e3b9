// The measuring client: requests over kept connections, and event streams read as they come.
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const silenceMs = 60_000;

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Resolves with the whole answer; `onPiece` sees each piece of it as it comes. */
export function post(url: string, body: unknown, onPiece?: (piece: string) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const data = JSON.stringify(body);
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(data) };
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
        onPiece?.(piece);
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    guard(sent, reject);
    sent.end(data);
  });
}

export interface EventStream {
  /** Resolves when the stream is open at the server. */
  readonly opened: Promise<void>;
  /** Contract: called with the type and the data of every event; one listener. */
  onEvent: (type: string, data: string) => void;
  close(): void;
}

export function openEvents(url: string, onEvent: (type: string, data: string) => void = () => {}): EventStream {
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>();
  const sent = request(url, { agent, headers: { accept: "text/event-stream" } }, (response) => {
    if (response.statusCode !== 200) return reject(new Error(`events answered ${response.statusCode}`));
    readEvents(response, resolve, (type, data) => stream.onEvent(type, data));
  });
  guard(sent, reject);
  sent.end();
  const stream: EventStream = { opened, onEvent, close: () => void sent.destroy() };
  return stream;
}

function readEvents(response: IncomingMessage, open: () => void, report: (type: string, data: string) => void): void {
  let buffer = "";
  response.setEncoding("utf8");
  response.on("data", (piece: string) => {
    open();
    buffer += piece;
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const block = buffer.slice(0, end);
      buffer = buffer.slice(end + 2);
      const type = /^event: (.*)$/m.exec(block)?.[1];
      if (type !== undefined) report(type, /^data: (.*)$/m.exec(block)?.[1] ?? "");
    }
  });
  // Closing the stream is how a reader leaves; an answer that is missing is noticed by who waits for it.
  response.on("error", () => response.destroy());
}

function guard(sent: ClientRequest, reject: (error: Error) => void): void {
  sent.setTimeout(silenceMs, () => sent.destroy(new Error("nothing came for a minute")));
  sent.on("error", reject);
}
