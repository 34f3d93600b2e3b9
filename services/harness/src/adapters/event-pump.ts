// Moves one session's events from the bus to one sink: replay first, then live, and a catch-up whenever in doubt.
//
// E1 Subscribed before anything is read, so that nothing falls between replay and live.
// E2 One item at a time, in order of arrival; what waits is bounded, and a sink that cannot keep up is ended.
// E3 Live notices are only hints: after a reconnect, a gap and on every heartbeat the journal is read again.
import type { Bus } from "@flotilla/bus";
import { type StoredCommit, subjects, type TokenFrame } from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { Position } from "../domain/position.ts";
import type { SessionStream } from "../domain/session-stream.ts";
import type { EventSource, Pump, Sink } from "../ports.ts";
import { openStream } from "./opening.ts";
import { readFrame, readFrames } from "./token-frames.ts";
import { WorkQueue } from "./work-queue.ts";

export interface PumpOptions {
  readonly heartbeatMs: number;
  /** Events that wait for the sink; one with more than this for `slowMs` is ended. */
  readonly bufferBytes: number;
  /** One large answer is more than the buffer for a moment, also with the fastest reader. @default 1000 */
  readonly slowMs?: number;
}

type Item =
  | { kind: "commit"; stored: StoredCommit }
  | { kind: "frame"; frame: TokenFrame }
  | { kind: "chunk"; messageId: string; frames: TokenFrame[] }
  | { kind: "catch-up"; withDeltas: boolean };

/** Rough cost of an item besides its text. */
const itemBytes = 256;
const doubtMs = 250;
const longestDoubtMs = 8_000;
/** As many buffers end a sink at once. */
const burstBuffers = 16;

export function createEventSource(bus: Bus, options: PumpOptions): EventSource {
  return {
    open(sessionId, from, sink) {
      const pump = new EventPump({ bus, sessionId, sink, options });
      void pump.run(from);
      return pump;
    },
  };
}

interface PumpDeps {
  readonly bus: Bus;
  readonly sessionId: string;
  readonly sink: Sink;
  readonly options: PumpOptions;
}

class EventPump implements Pump {
  readonly #deps: PumpDeps;
  readonly #logger: Logger;
  readonly #queue = new WorkQueue<Item>();
  readonly #release: (() => void)[] = [];
  #doubtTimer: NodeJS.Timeout | null = null;
  #slowTimer: NodeJS.Timeout | null = null;
  #doubtMs = doubtMs;
  #isCatchUpQueued = false;
  /** Newest commit of which there was a notice; a read that does not reach it is behind the leader. */
  #noticedSeq = 0;

  constructor(deps: PumpDeps) {
    this.#deps = deps;
    this.#logger = deps.bus.logger.with({ session_id: deps.sessionId });
  }

  stop(): void {
    this.#queue.close();
    if (this.#doubtTimer !== null) clearTimeout(this.#doubtTimer);
    if (this.#slowTimer !== null) clearTimeout(this.#slowTimer);
    for (const release of this.#release.splice(0)) release();
  }

  /** Runs until stopped; a failure ends the sink, whose reader comes back with its position. */
  async run(from: Position | null): Promise<void> {
    try {
      await this.#subscribe();
      const stream = await this.#replay(from);
      for (let item = await this.#queue.next(); item !== undefined; item = await this.#queue.next()) {
        await this.#handle(stream, item);
        this.#watchDoubt(stream);
      }
    } catch (error) {
      this.#logger.warn("an event stream ended", { reason: ensureFlotillaError(error).message });
      this.#deps.sink.fail("the stream cannot go on");
    } finally {
      this.stop();
    }
  }

  /** E1. */
  async #subscribe(): Promise<void> {
    const { bus, sessionId, options } = this.#deps;
    const watch = bus.journal.watch(sessionId, (message) => {
      if (message.kind === "commit") this.#push({ kind: "commit", stored: message.stored }, message.bytes);
    });
    const tokens = bus.nc.subscribe(subjects.tokens(sessionId), {
      callback: (error, message) => {
        const frame = error === null ? readFrame(message.data) : null;
        if (frame !== null) this.#push({ kind: "frame", frame }, frame.text.length);
      },
    });
    const deltas = bus.nc.subscribe(subjects.deltasOf(sessionId), {
      callback: (error, message) => {
        const frames = error === null ? readFrames(message.data) : null;
        const messageId = message.subject.split(".")[2];
        if (frames !== null && messageId !== undefined) {
          this.#push({ kind: "chunk", messageId, frames }, message.data.length);
        }
      },
    });
    const timer = setInterval(() => this.#catchUp(false), options.heartbeatMs);
    this.#release.push(
      () => watch.stop(),
      () => tokens.unsubscribe(),
      () => deltas.unsubscribe(),
      () => clearInterval(timer),
      bus.onReconnect(() => this.#catchUp(true)),
    );
    await Promise.all([watch.ready(), bus.nc.flush()]);
  }

  async #replay(from: Position | null): Promise<SessionStream> {
    const { bus, sessionId, sink } = this.#deps;
    const { stream, first, commits } = await openStream(bus.journal, sessionId, from);
    await sink.send(first);
    for (const stored of commits) await this.#apply(stream, stored);
    await this.#readDeltas(stream);
    // A direct read may be behind the leader; then the newest commit was missed and no notice of it will come.
    const tail = await bus.journal.tail(sessionId, { fresh: true });
    this.#noticedSeq = tail?.seq ?? 0;
    if (this.#noticedSeq > stream.seenSeq) this.#catchUp(false);
    return stream;
  }

  /** E2. */
  #push(item: Item, bytes: number): void {
    const { bufferBytes, slowMs } = this.#deps.options;
    this.#queue.push(item, bytes + itemBytes);
    if (this.#queue.bytes <= bufferBytes) return;
    if (this.#queue.bytes > burstBuffers * bufferBytes) this.#tooSlow();
    else
      this.#slowTimer ??= setTimeout(() => {
        this.#slowTimer = null;
        if (this.#queue.bytes > bufferBytes) this.#tooSlow();
      }, slowMs ?? 1_000);
  }

  #tooSlow(): void {
    this.#deps.sink.fail("the reader is too slow");
    this.stop();
  }

  /** E3. */
  #catchUp(withDeltas: boolean): void {
    if (this.#isCatchUpQueued && !withDeltas) return;
    this.#isCatchUpQueued = true;
    this.#queue.push({ kind: "catch-up", withDeltas });
  }

  async #handle(stream: SessionStream, item: Item): Promise<void> {
    const { sink } = this.#deps;
    switch (item.kind) {
      case "frame":
        return sink.send(stream.frame(item.frame));
      case "chunk":
        return sink.send(stream.chunk(item.messageId, item.frames, false));
      case "commit": {
        const order = stream.order(item.stored);
        this.#noticedSeq = Math.max(this.#noticedSeq, item.stored.seq);
        if (order === "next") return this.#apply(stream, item.stored);
        if (order === "gap") this.#catchUp(false);
        return;
      }
      case "catch-up":
        this.#isCatchUpQueued = false;
        return this.#readAgain(stream, item.withDeltas);
      default:
        return item satisfies never;
    }
  }

  async #readAgain(stream: SessionStream, withDeltas: boolean): Promise<void> {
    const { bus, sessionId } = this.#deps;
    const commits = await bus.journal.readCommits(sessionId, stream.seenSeq + 1);
    for (const stored of commits) await this.#apply(stream, stored);
    if (withDeltas || stream.isWaiting) await this.#readDeltas(stream);
  }

  async #apply(stream: SessionStream, stored: StoredCommit): Promise<void> {
    const { bus, sessionId, sink } = this.#deps;
    const needs = stream.needs(stored);
    if (needs.entries.length > 0) {
      for (const { commit } of await bus.journal.readCommits(sessionId, 1)) {
        for (const entry of commit.entries)
          if (needs.entries.includes(entry.id)) stream.remember(entry.id, entry.message);
      }
    }
    const deltas = new Map<string, TokenFrame[]>();
    for (const id of needs.deltas) deltas.set(id, await this.#storedFrames(id));
    await sink.send(stream.apply(stored, deltas));
  }

  async #readDeltas(stream: SessionStream): Promise<void> {
    const id = stream.openMessageId;
    if (id === null) return;
    await this.#deps.sink.send(stream.chunk(id, await this.#storedFrames(id), true));
  }

  /** Stored chunks only complete what the final message completes anyway: without them the stream goes on. */
  async #storedFrames(messageId: string): Promise<TokenFrame[]> {
    try {
      return await this.#deps.bus.deltas.read(this.#deps.sessionId, messageId);
    } catch (error) {
      this.#logger.warn("stored deltas could not be read", { reason: ensureFlotillaError(error).message });
      return [];
    }
  }

  /** What waits for a commit or a chunk whose notice may be lost: the journal is asked, less and less often. */
  #watchDoubt(stream: SessionStream): void {
    const isInDoubt = (): boolean => stream.isWaiting || this.#noticedSeq > stream.seenSeq;
    if (!isInDoubt()) {
      this.#doubtMs = doubtMs;
      return;
    }
    if (this.#doubtTimer !== null) return;
    this.#doubtTimer = setTimeout(() => {
      this.#doubtTimer = null;
      if (isInDoubt()) this.#catchUp(false);
    }, this.#doubtMs);
    this.#doubtMs = Math.min(this.#doubtMs * 2, longestDoubtMs);
  }
}
