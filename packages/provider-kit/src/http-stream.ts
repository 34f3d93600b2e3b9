// One streaming POST: the events of its body, watched for silence, with every way of failing as a ProviderFailure.
import { failureOf } from "./classify.ts";
import { ProviderFailure, permanent, transient } from "./failure.ts";
import { createSseParser, type SseEvent, SseTooLarge } from "./sse-parser.ts";
import { readVendorError } from "./vendor-error.ts";

export interface StreamRequest {
  readonly provider: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly signal: AbortSignal;
  /** Longest silence, before the headers and between two pieces of the body. */
  readonly stallTimeoutMs: number;
  /** Epoch ms. */
  readonly now: () => number;
  /** @default global fetch */
  readonly fetch?: typeof fetch;
}

export interface EventStream extends AsyncIterable<SseEvent> {
  /** From now on silence ends the stream quietly after `ms`: nothing more is needed from it. */
  relax(ms: number): void;
  /** The whole body as one JSON text, when the server did not stream at all. */
  readonly isJson: boolean;
  text(): Promise<string>;
}

const errorBodyBytes = 64 * 1024;
/** After the last event the rest of the body is read away, so that the connection can be used again. */
const drainMs = 1_000;

/** Resolves once the vendor has accepted the request; `use` gets its events. */
export async function withEventStream<T>(request: StreamRequest, use: (events: EventStream) => Promise<T>): Promise<T> {
  const watchdog = new Watchdog(request.stallTimeoutMs, request.signal);
  try {
    const response = await send(request, watchdog);
    if (!response.ok) throw await refusal(request, response, watchdog);
    if (response.body === null) throw transient(`${request.provider} answered without a body`);
    const body = new BodyEvents(response.body.getReader(), watchdog, isJson(response));
    try {
      return await use(body);
    } finally {
      body.release();
    }
  } catch (error) {
    throw watchdog.explain(error, request.provider);
  } finally {
    watchdog.stop();
  }
}

async function send(request: StreamRequest, watchdog: Watchdog): Promise<Response> {
  const call = request.fetch ?? fetch;
  return await call(request.url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream", ...request.headers },
    body: JSON.stringify(request.body),
    signal: watchdog.signal,
    // A redirect would turn the POST into a GET and could carry the key to another host.
    redirect: "manual",
  });
}

function isJson(response: Response): boolean {
  return /^application\/(?:[\w.+-]*\+)?json\b/.test(response.headers.get("content-type") ?? "");
}

async function refusal(request: StreamRequest, response: Response, watchdog: Watchdog): Promise<ProviderFailure> {
  const { provider } = request;
  if (response.status < 400) {
    watchdog.abandon();
    return permanent(`${provider} answered ${response.status} (a redirect?); check the base URL`);
  }
  const text = response.body === null ? "" : await readText(response.body.getReader(), watchdog, errorBodyBytes);
  const error = readVendorError(text, response.status);
  return new ProviderFailure(failureOf(error, { provider, headers: response.headers, now: request.now() }));
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** Up to `limit` bytes; an error body that breaks off is still an error with a status. */
async function readText(reader: Reader, watchdog: Watchdog, limit: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let size = 0; size < limit; ) {
      const { done, value } = await reader.read();
      watchdog.beat();
      if (done) return text + decoder.decode();
      size += value.byteLength;
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    if (watchdog.isAborted) throw error;
    return text;
  }
  watchdog.abandon();
  return text;
}

class BodyEvents implements EventStream {
  readonly isJson: boolean;
  readonly #reader: Reader;
  readonly #watchdog: Watchdog;
  #isRelaxed = false;
  #isDone = false;

  constructor(reader: Reader, watchdog: Watchdog, json: boolean) {
    this.#reader = reader;
    this.#watchdog = watchdog;
    this.isJson = json;
  }

  relax(ms: number): void {
    if (this.#isRelaxed) return;
    this.#isRelaxed = true;
    this.#watchdog.beat(ms);
  }

  async text(): Promise<string> {
    this.#isDone = true;
    return await readText(this.#reader, this.#watchdog, 16 * 1024 * 1024);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SseEvent, void, undefined> {
    const decoder = new TextDecoder();
    const parser = createSseParser();
    for (;;) {
      const piece = await this.#read();
      if (piece === null) break;
      yield* parser.push(decoder.decode(piece, { stream: true }));
    }
    yield* parser.push(decoder.decode());
    const last = parser.end();
    if (last !== null) yield last;
  }

  async #read(): Promise<Uint8Array | null> {
    try {
      const { done, value } = await this.#reader.read();
      if (!this.#isRelaxed) this.#watchdog.beat();
      this.#isDone = done;
      return done ? null : value;
    } catch (error) {
      this.#isDone = true;
      // Nothing of worth was lost, unless the caller itself gave up.
      if (this.#isRelaxed && !this.#watchdog.isCancelled) return null;
      throw error;
    }
  }

  release(): void {
    if (this.#isDone) return;
    if (this.#watchdog.isAborted) return;
    void drain(this.#reader);
  }
}

async function drain(reader: Reader): Promise<void> {
  const timer = setTimeout(() => void reader.cancel().catch(() => undefined), drainMs);
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is complete; how the connection ended is of no interest.
  } finally {
    clearTimeout(timer);
  }
}

/** Aborts the request after a silence; knows who ended it and why. */
class Watchdog {
  readonly signal: AbortSignal;
  readonly #caller: AbortSignal;
  readonly #own = new AbortController();
  readonly #stallMs: number;
  #limitMs: number;
  #timer: NodeJS.Timeout | null = null;
  #isStalled = false;

  constructor(stallMs: number, caller: AbortSignal) {
    this.#caller = caller;
    this.#stallMs = stallMs;
    this.#limitMs = stallMs;
    this.signal = AbortSignal.any([caller, this.#own.signal]);
    this.beat();
  }

  get isCancelled(): boolean {
    return this.#caller.aborted;
  }

  get isAborted(): boolean {
    return this.signal.aborted;
  }

  beat(limitMs = this.#stallMs): void {
    this.#limitMs = limitMs;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isStalled = true;
      this.#own.abort();
    }, limitMs);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Closes the connection: the rest of the body is not wanted. */
  abandon(): void {
    this.#own.abort();
  }

  explain(error: unknown, provider: string): unknown {
    if (this.#caller.aborted) return error;
    if (this.#isStalled) return transient(`${provider} sent nothing for ${this.#limitMs} ms`, error);
    if (error instanceof ProviderFailure) return error;
    if (error instanceof SseTooLarge) return permanent(`${provider}: ${error.message}`);
    return isNetworkError(error) ? transient(`${provider}: the connection failed (${reasonOf(error)})`, error) : error;
  }
}

/** undici: `fetch failed` before the headers, `terminated` after, with the system error as cause. */
function isNetworkError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const message = error.message;
  const isFetch = error instanceof TypeError && (message === "fetch failed" || message === "terminated");
  return isFetch || error.name === "AbortError";
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (cause instanceof Error) return "code" in cause && cause.code !== undefined ? String(cause.code) : cause.message;
  return String(cause);
}
