// A journal in memory for tests of what real NATS cannot be made to do on purpose: lost notices and stale reads.
import type { Bus } from "@flotilla/bus";
import type { Commit, StoredCommit, TokenFrame } from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import type { SentEvent } from "../src/domain/session-stream.ts";
import type { Sink } from "../src/ports.ts";
import { stored } from "./builders.ts";

type Notice = Parameters<Bus["journal"]["watch"]>[1];
type Callback = (error: Error | null, message: { subject: string; data: Uint8Array }) => void;

const encoder = new TextEncoder();

export class FakeJournal {
  readonly commits: StoredCommit[] = [];
  readonly deltas = new Map<string, TokenFrame[]>();
  readonly reads: number[] = [];
  /** Direct reads see only this many of the newest commits less. */
  behind = 0;
  isFailing = false;
  readonly #notices = new Set<Notice>();
  readonly #subscriptions = new Map<string, Callback>();
  readonly #reconnects = new Set<() => void>();
  #seq = 0;

  append(commit: Commit, options: { isNoticed?: boolean; skip?: number } = {}): StoredCommit {
    this.#seq += 1 + (options.skip ?? 0);
    const added = stored(this.#seq, commit);
    this.commits.push(added);
    const bytes = JSON.stringify(commit).length;
    if (options.isNoticed !== false)
      for (const notice of this.#notices) notice({ kind: "commit", stored: added, bytes });
    return added;
  }

  frame(sessionId: string, frame: unknown): void {
    const subject = `tokens.${sessionId}`;
    this.#subscriptions.get(subject)?.(null, { subject, data: encoder.encode(JSON.stringify(frame)) });
  }

  reconnect(): void {
    for (const handler of this.#reconnects) handler();
  }

  bus(): Bus {
    const journal = {
      lastSequence: async () => this.#seq,
      tail: async () => this.commits.at(-1) ?? null,
      readCommits: async (_sessionId: string, from: number) => {
        this.reads.push(from);
        if (this.isFailing) throw new Error("the journal cannot be read");
        const visible = this.behind === 0 ? this.commits : this.commits.slice(0, -this.behind);
        return visible.filter((commit) => commit.seq >= from);
      },
      readInputs: async () => [],
      watch: (_sessionId: string, notice: Notice) => {
        this.#notices.add(notice);
        return { ready: async () => {}, stop: () => this.#notices.delete(notice) };
      },
    };
    const nc = {
      flush: async () => {},
      subscribe: (subject: string, { callback }: { callback: Callback }) => {
        this.#subscriptions.set(subject, callback);
        return { unsubscribe: () => this.#subscriptions.delete(subject) };
      },
    };
    return {
      journal,
      nc,
      logger: createLogger({ level: "silent", name: "test" }),
      deltas: { read: async (_sessionId: string, messageId: string) => this.deltas.get(messageId) ?? [] },
      onReconnect: (handler: () => void) => {
        this.#reconnects.add(handler);
        return () => this.#reconnects.delete(handler);
      },
    } as unknown as Bus;
  }
}

export class RecordingSink implements Sink {
  readonly sent: SentEvent[] = [];
  failure: string | null = null;
  /** Set: `send` waits for it. */
  gate: Promise<void> | null = null;

  get types(): string[] {
    return this.sent.map(({ event }) => event.type);
  }

  textOf(messageId: string): string {
    return this.sent
      .map(({ event }) => (event.type === "message_update" && event.message_id === messageId ? event.delta : ""))
      .join("");
  }

  async send(events: readonly SentEvent[]): Promise<void> {
    if (this.gate !== null) await this.gate;
    this.sent.push(...events);
  }

  fail(reason: string): void {
    this.failure = reason;
  }
}
