// ui::subscribe: pushes session events to browsers that joined the bus themselves (contracts.md 7.3).
//
// U1 In order per browser, one push at a time; a lost push is not repeated: the id lets the browser resume over HTTP.
// U2 A browser that is gone (FUNCTION_NOT_FOUND, or many pushes unanswered) is dropped from every subscription.
import type { Bus } from "@flotilla/bus";
import { parseTurnSubject, subjects } from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { SentEvent } from "../domain/session-stream.ts";
import type { EventSource, Pump, Sink } from "../ports.ts";

const pushTimeoutMs = 2_000;
const unansweredLimit = 5;
/** Pushes that wait for one browser; the oldest are lost first. */
const waitingLimit = 2_000;
/** A session whose turn has ended this long is only watched for its next commit. */
const idleMs = 30_000;
/** An event index that no commit reaches. */
const afterAllEvents = 999_999_999;

interface Push extends SentEvent {
  readonly session_id: string;
}

interface Browser {
  readonly id: string;
  readonly sessions: Set<string>;
  isEverywhere: boolean;
  waiting: Push[];
  isPushing: boolean;
  unanswered: number;
}

interface Watched {
  readonly pump: Pump;
  idle: NodeJS.Timeout | null;
}

export class UiSubscriptions {
  readonly #bus: Bus;
  readonly #events: EventSource;
  readonly #logger: Logger;
  readonly #browsers = new Map<string, Browser>();
  readonly #watched = new Map<string, Watched>();
  #everywhere: { unsubscribe(): void } | null = null;

  constructor(bus: Bus, events: EventSource) {
    this.#bus = bus;
    this.#events = events;
    this.#logger = bus.logger;
  }

  /** A null session is all sessions. Answers how many browsers are subscribed. */
  async subscribe(browserId: string, sessionId: string | null): Promise<number> {
    const browser = this.#browsers.get(browserId) ?? aBrowser(browserId);
    this.#browsers.set(browserId, browser);
    if (sessionId === null) {
      browser.isEverywhere = true;
      this.#everywhere ??= this.#watchEverything();
      await this.#bus.nc.flush();
    } else {
      browser.sessions.add(sessionId);
      const tail = await this.#bus.journal.tail(sessionId, { fresh: true });
      this.#watch(sessionId, tail?.seq ?? 0);
    }
    return this.#browsers.size;
  }

  unsubscribe(browserId: string, sessionId: string | null): number {
    const browser = this.#browsers.get(browserId);
    if (browser === undefined) return this.#browsers.size;
    if (sessionId === null) browser.isEverywhere = false;
    else browser.sessions.delete(sessionId);
    if (!browser.isEverywhere && browser.sessions.size === 0) this.#browsers.delete(browserId);
    this.#release();
    return this.#browsers.size;
  }

  stop(): void {
    this.#browsers.clear();
    this.#release();
  }

  #watchEverything(): { unsubscribe(): void } {
    return this.#bus.nc.subscribe(subjects.liveCommits, {
      callback: (error, message) => {
        const parsed = error === null ? parseTurnSubject(message.subject) : null;
        const seq = Number(message.headers?.get("Nats-Sequence"));
        if (parsed !== null && seq > 0) this.#watch(parsed.sessionId, seq - 1);
      },
    });
  }

  /** Pushes what comes after `seq`: what was before is read over HTTP. */
  #watch(sessionId: string, seq: number): void {
    if (this.#watched.has(sessionId)) return;
    const position = { seq, index: afterAllEvents, text: null };
    const sink: Sink = {
      send: async (sent) => this.#deliver(sessionId, sent),
      fail: () => this.#forget(sessionId),
    };
    this.#watched.set(sessionId, { pump: this.#events.open(sessionId, position, sink), idle: null });
  }

  #deliver(sessionId: string, sent: readonly SentEvent[]): void {
    if (sent.length === 0) return;
    const watched = this.#watched.get(sessionId);
    if (watched?.idle != null) clearTimeout(watched.idle);
    if (watched !== undefined) watched.idle = null;
    const hasEnded = sent.some(({ event }) => event.type === "agent_end");
    const isNamed = [...this.#browsers.values()].some((browser) => browser.sessions.has(sessionId));
    if (hasEnded && watched !== undefined && !isNamed) {
      watched.idle = setTimeout(() => this.#forget(sessionId), idleMs);
    }
    for (const browser of this.#browsers.values()) {
      if (!browser.isEverywhere && !browser.sessions.has(sessionId)) continue;
      browser.waiting.push(...sent.map((item) => ({ session_id: sessionId, ...item })));
      if (browser.waiting.length > waitingLimit) browser.waiting = browser.waiting.slice(-waitingLimit);
      if (!browser.isPushing) void this.#push(browser);
    }
  }

  /** U1. */
  async #push(browser: Browser): Promise<void> {
    browser.isPushing = true;
    const functionId = `ui::session::event::${browser.id}`;
    for (let push = browser.waiting.shift(); push !== undefined; push = browser.waiting.shift()) {
      try {
        await this.#bus.callId(functionId, push, { timeoutMs: pushTimeoutMs, sessionId: push.session_id });
        browser.unanswered = 0;
      } catch (thrown) {
        const { code } = ensureFlotillaError(thrown);
        browser.unanswered += 1;
        this.#logger.debug("a push to a browser failed", { browser_id: browser.id, code });
        if (code !== "FUNCTION_NOT_FOUND" && browser.unanswered < unansweredLimit) continue;
        this.#evict(browser);
      }
    }
    browser.isPushing = false;
  }

  /** U2. */
  #evict(browser: Browser): void {
    browser.waiting = [];
    this.#browsers.delete(browser.id);
    this.#release();
  }

  #forget(sessionId: string): void {
    const watched = this.#watched.get(sessionId);
    if (watched?.idle != null) clearTimeout(watched.idle);
    watched?.pump.stop();
    this.#watched.delete(sessionId);
  }

  /** Stops what nobody listens to any more. */
  #release(): void {
    const browsers = [...this.#browsers.values()];
    const isEverywhere = browsers.some((browser) => browser.isEverywhere);
    if (!isEverywhere) {
      this.#everywhere?.unsubscribe();
      this.#everywhere = null;
    }
    for (const sessionId of [...this.#watched.keys()]) {
      if (!isEverywhere && !browsers.some((browser) => browser.sessions.has(sessionId))) this.#forget(sessionId);
    }
  }
}

function aBrowser(id: string): Browser {
  return { id, sessions: new Set(), isEverywhere: false, waiting: [], isPushing: false, unanswered: 0 };
}
