// The events of a session as one endless sequence: a broken connection is taken up where it broke.
import type { ApiClient } from "./api-client.ts";
import { ApiError } from "./errors.ts";
import { parseEventStream } from "./event-stream.ts";

export interface SentEvent {
  readonly id: string;
  readonly event: string;
  readonly data: { readonly type: string; readonly [key: string]: unknown };
}

export interface EventsOptions {
  readonly signal?: AbortSignal | undefined;
  /** Starts after this event; `0` is the whole session. @default a snapshot and the newest turn */
  readonly lastEventId?: string | undefined;
  /** How long a lost front door is looked for. @default 60000 */
  readonly reconnectMs?: number;
  /** Contract: called after each loss of the connection; the URL for the next try, for example another replica's. */
  readonly onReconnect?: (() => ApiClient) | undefined;
}

/** The server sends a comment every 15 s; a connection that is silent for longer than this is dead. */
const silenceMs = 45_000;
const pauseMs = 200;

/** Ends when the signal aborts; throws when the front door refuses, or stays away for too long. */
export async function* sessionEvents(
  client: ApiClient,
  sessionId: string,
  options: EventsOptions = {},
): AsyncGenerator<SentEvent> {
  const { signal, reconnectMs = 60_000 } = options;
  let from = options.lastEventId;
  let current = client;
  let lostAt = Date.now();
  const isOver = (): boolean => signal?.aborted === true;
  while (!isOver()) {
    try {
      for await (const event of connectOnce(current, sessionId, { from, signal })) {
        from = event.id;
        lostAt = Date.now();
        yield event;
      }
    } catch (error) {
      if (isOver()) return;
      const isRefused = error instanceof ApiError && error.status < 500;
      if (isRefused || Date.now() - lostAt > reconnectMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    current = options.onReconnect?.() ?? current;
  }
}

async function* connectOnce(
  client: ApiClient,
  sessionId: string,
  { from, signal }: { from: string | undefined; signal: AbortSignal | undefined },
): AsyncGenerator<SentEvent> {
  const connection = new AbortController();
  const silence = setTimeout(() => connection.abort(new Error("the event stream is silent")), silenceMs);
  try {
    const response = await client.open(`/v1/sessions/${encodeURIComponent(sessionId)}/events`, {
      headers: { accept: "text/event-stream", ...(from === undefined ? {} : { "last-event-id": from }) },
      signal: signal === undefined ? connection.signal : AbortSignal.any([signal, connection.signal]),
    });
    if (response.body === null) return;
    for await (const raw of parseEventStream(response.body)) {
      silence.refresh();
      if (raw !== null) yield { id: raw.id, event: raw.event, data: JSON.parse(raw.data) as SentEvent["data"] };
    }
  } finally {
    clearTimeout(silence);
    // The consumer may leave in mid-stream; without this the connection would stay open.
    connection.abort();
  }
}
