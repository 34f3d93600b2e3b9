// One session of the measurement: starts turns over HTTP and reads their events, checking that they are what was asked for.
import { randomId } from "@flotilla/contracts";
import { type EventStream, openEvents, post } from "./http-client.ts";
import { toolCalls } from "./model.ts";

export class Session {
  readonly id = `s-${randomId().replaceAll("_", "x")}`;
  readonly #url: string;
  #stream: EventStream | null = null;

  constructor(fleetUrl: string) {
    this.#url = `${fleetUrl}/v1/sessions/${this.id}`;
  }

  async start(body: object): Promise<void> {
    const answer = await post(`${this.#url}/turns`, body);
    if (answer.status !== 202) throw new Error(`a turn was not accepted: ${answer.status} ${answer.text}`);
  }

  /** The stream stays open; from now on the listener of `events` gets what comes. */
  async open(onEvent?: (type: string, data: string) => void): Promise<EventStream> {
    this.#stream = openEvents(`${this.#url}/events`, onEvent);
    await this.#stream.opened;
    return this.#stream;
  }

  close(): void {
    this.#stream?.close();
  }
}

export class EndOfTurn {
  readonly #done = Promise.withResolvers<number>();
  readonly #tools: number;
  readonly #seen = new Map<string, number>();

  constructor(tools: number) {
    this.#tools = tools;
  }

  /** When `agent_end` came, by `performance.now`. */
  get at(): Promise<number> {
    return this.#done.promise;
  }

  readonly onEvent = (type: string, data: string): void => {
    this.#seen.set(type, (this.#seen.get(type) ?? 0) + 1);
    if (type !== "agent_end") return;
    const calls = this.#seen.get("message_complete") ?? 0;
    const tools = this.#seen.get("function_execution_end") ?? 0;
    if (tools === this.#tools && calls >= this.#tools + 1) this.#done.resolve(performance.now());
    else this.#done.reject(new Error(`a turn ended after ${calls} messages and ${tools} tool calls: ${data}`));
  };
}

/** A turn of a new session from the request until `agent_end` reaches its reader. */
export async function nineStepTurn(
  fleetUrl: string,
  body: object,
): Promise<{ sessionId: string; startedAt: number; endedAt: number }> {
  const session = new Session(fleetUrl);
  const end = new EndOfTurn(toolCalls);
  const startedAt = performance.now();
  try {
    await session.start(body);
    await session.open(end.onEvent);
    return { sessionId: session.id, startedAt, endedAt: await end.at };
  } finally {
    session.close();
  }
}
