// How much later the first token comes through the fleet than from the upstream itself: the second turn of sessions, in
// interleaved rounds.
import type { BenchFleet } from "./fleet.ts";
import { post } from "./http-client.ts";
import { turnBody } from "./model.ts";
import { EndOfTurn, Session } from "./session.ts";
import { rounded, type Spread, spreadOf } from "./statistics.ts";

const stream = { tools: 0, tokens: 50, ttft: 50, delay: 2 };

export interface FirstTokenResult {
  readonly sessions: number;
  /** Beyond the 50 ms of the upstream. */
  readonly direct: Spread;
  readonly ours: Spread;
  readonly addedP50: number;
  readonly addedP99: number;
  /** Until the last event of the turn. */
  readonly wholeTurnP50: number;
}

interface Times {
  readonly first: number;
  readonly whole: number;
}

async function direct(upstreamUrl: string): Promise<Times> {
  const { text } = turnBody("upstream", stream) as { text: string };
  const startedAt = performance.now();
  let first = Number.NaN;
  await post(
    `${upstreamUrl}/chat/completions`,
    { model: "gpt-fixture-1", stream: true, messages: [{ role: "user", content: text }] },
    (piece) => {
      if (Number.isNaN(first) && piece.includes('"content":"word0')) first = performance.now();
    },
  );
  return { first: first - startedAt - stream.ttft, whole: performance.now() - startedAt };
}

/** A session whose event stream is open, as a chat window has it. */
class Chat {
  readonly #session: Session;
  readonly #listen: (onEvent: (type: string, data: string) => void) => void;

  private constructor(session: Session, listen: (onEvent: (type: string, data: string) => void) => void) {
    this.#session = session;
    this.#listen = listen;
  }

  /** Resolves after a first short turn: what is measured is a conversation that goes on. */
  static async open(fleetUrl: string): Promise<Chat> {
    const session = new Session(fleetUrl);
    const end = new EndOfTurn(0);
    await session.start(turnBody("upstream", { tools: 0, tokens: 1 }));
    const events = await session.open(end.onEvent);
    await end.at;
    return new Chat(session, (onEvent) => {
      events.onEvent = onEvent;
    });
  }

  async turn(): Promise<Times> {
    const end = new EndOfTurn(0);
    let first = Number.NaN;
    this.#listen((type, data) => {
      if (type === "message_update" && Number.isNaN(first)) first = performance.now();
      end.onEvent(type, data);
    });
    const startedAt = performance.now();
    await this.#session.start(turnBody("upstream", stream));
    return { whole: (await end.at) - startedAt, first: first - startedAt - stream.ttft };
  }

  close(): void {
    this.#session.close();
  }
}

export interface FirstTokenOptions {
  readonly upstreamUrl: string;
  readonly sessions: number;
  readonly rounds: number;
  /** Each session has one turn in this time; with one session they follow each other. */
  readonly periodMs: number;
}

export async function measureFirstToken(fleet: BenchFleet, options: FirstTokenOptions): Promise<FirstTokenResult> {
  const directTimes: Times[] = [];
  const ourTimes: Times[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const chats = await Promise.all(Array.from({ length: options.sessions }, () => Chat.open(fleet.url)));
    directTimes.push(...(await spreadOut(options, () => direct(options.upstreamUrl))));
    ourTimes.push(
      ...(await spreadOut(options, (index) => chats[index]?.turn() ?? Promise.reject(new RangeError("no such chat")))),
    );
    for (const chat of chats) chat.close();
  }
  const directly = spreadOf(directTimes.map(({ first }) => first));
  const ours = spreadOf(ourTimes.map(({ first }) => first));
  return {
    sessions: options.sessions,
    direct: directly,
    ours,
    addedP50: rounded(ours.p50 - directly.p50),
    addedP99: rounded(ours.p99 - directly.p99),
    wholeTurnP50: spreadOf(ourTimes.map(({ whole }) => whole)).p50,
  };
}

/** One call per session, evenly over the period; a single session only waits for its own answer. */
function spreadOut(
  { sessions, periodMs }: FirstTokenOptions,
  call: (index: number) => Promise<Times>,
): Promise<Times[]> {
  if (sessions === 1) return Promise.all([call(0)]);
  return Promise.all(
    Array.from({ length: sessions }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, (index * periodMs) / sessions));
      return call(index);
    }),
  );
}
