// The turn-step consumer: what each delivered input or anchor means (commit-design, rules 1, 2 and 5).
//
// D1 An input is acknowledged only when a cursor has passed it, an anchor only when it is superseded or its owner went idle.
// D2 Deliveries of one session are handled one after the other in this process.
// D3 What this process remembers of a session is acted on only under the fence: when it is old, the commit is refused and
//    the journal is read.
import {
  applyCommit,
  type Commit,
  consumerNames,
  emptyView,
  headerNames,
  isIdle,
  parseTurnSubject,
  randomId,
  type SessionView,
  type StoredCommit,
  type StoredInput,
  streamNames,
} from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import { heartbeatMs, SessionRunner } from "./session-runner.ts";
import type { EngineDeps } from "./types.ts";
import { ViewCache } from "./view-cache.ts";

export class Deliveries {
  readonly #deps: EngineDeps;
  readonly #runners = new Map<string, SessionRunner>();
  readonly #queues = new Map<string, Promise<void>>();
  readonly #views: ViewCache;
  /** The input for which the newest anchor of a remembered session was written. */
  readonly #firstInputs = new WeakMap<SessionView, StoredInput>();
  #pulls: ConsumerMessages[] = [];
  #isStopping = false;
  readonly #ended = new Set<Promise<void>>();

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    this.#views = new ViewCache(deps.config.FLOTILLA_SESSION_CACHE);
  }

  /** Sessions that this process runs now. */
  get running(): number {
    return this.#runners.size;
  }

  async start(): Promise<void> {
    for (let shard = 0; shard < this.#deps.bus.journal.shards; shard++) {
      const consumer = await this.#deps.bus.js.consumers.get(streamNames.turnStep(shard), consumerNames.turnStep);
      const pull = await consumer.consume({
        max_messages: 256,
        expires: 5_000,
        idle_heartbeat: 1_000,
        callback: (message) => this.#enqueue(message),
      });
      this.#pulls.push(pull);
    }
  }

  /** SIGTERM: stop pulling, hand every session over at once; running calls go on. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const pull of this.#pulls) pull.stop();
    this.#pulls = [];
    await Promise.all([...this.#queues.values()]);
    await Promise.all([...this.#runners.values()].map((runner) => runner.handOver()));
    await Promise.all([...this.#ended]);
    await this.#deps.bus.nc.flush();
  }

  #enqueue(message: JsMsg): void {
    const sessionId = parseTurnSubject(message.subject)?.sessionId;
    if (sessionId === undefined) {
      message.term("not a session subject");
      return;
    }
    if (this.#isStopping) {
      message.nak();
      return;
    }
    const before = this.#queues.get(sessionId) ?? Promise.resolve();
    const mine = before.then(() => this.#handle(sessionId, message));
    this.#queues.set(sessionId, mine);
    void mine.finally(() => {
      if (this.#queues.get(sessionId) === mine) this.#queues.delete(sessionId);
    });
  }

  async #handle(sessionId: string, message: JsMsg): Promise<void> {
    try {
      const part = parseTurnSubject(message.subject)?.part;
      if (part?.kind === "input") await this.#onInput(sessionId, message);
      else await holding(message, () => this.#onAnchor(sessionId, message));
    } catch (cause) {
      const error = ensureFlotillaError(cause);
      this.#deps.logger.warn("a delivery was given back", {
        session_id: sessionId,
        code: error.code,
        reason: error.message,
      });
      message.nak(backoffMs(message));
    }
  }

  /** Rule 1. */
  async #onInput(sessionId: string, message: JsMsg): Promise<void> {
    const runner = this.#runners.get(sessionId);
    if (runner !== undefined) {
      if (message.seq <= runner.cursor) return message.ack();
      runner.notify();
      return message.nak(backoffMs(message));
    }
    const known = this.#knownTail(sessionId, message);
    if (known != null && message.seq <= known.commit.cursor) return message.ack();
    if (known !== undefined && isIdle(known)) return this.#wakeRemembered(sessionId, known, message);
    const tail = await this.#deps.bus.journal.tail(sessionId);
    if (tail !== null && message.seq <= tail.commit.cursor) return message.ack();
    if (isIdle(tail)) await this.#writeAnchor(sessionId, tail);
    message.nak(backoffMs(message));
  }

  /** D3: when the remembered tail proves to be old, what came after it is read. */
  async #wakeRemembered(sessionId: string, known: StoredCommit | null, message: JsMsg): Promise<void> {
    // Whatever comes of it, the input is looked at again; this goes out in one write with the anchor.
    message.nak(backoffMs(message));
    if (await this.#wakeWith(sessionId, known, message)) return;
    const { tail } = await this.#load(sessionId);
    const isTaken = tail !== null && message.seq <= tail.commit.cursor;
    if (isIdle(tail) && !isTaken) await this.#writeAnchor(sessionId, tail);
  }

  /** The newest commit that this process has seen; null when the input itself says that it is the session's first message. */
  #knownTail(sessionId: string, message: JsMsg): StoredCommit | null | undefined {
    const seen = this.#views.get(sessionId)?.tail;
    if (seen != null) return seen;
    return fenceOf(message) === 0 ? null : undefined;
  }

  /**
   * D3; false when the remembered tail is old. A start that was fenced by this very tail is the next input after the
   * cursor, and while nothing waited behind it at the consumer, nothing (an abort, say) has overtaken its opening.
   */
  async #wakeWith(sessionId: string, tail: StoredCommit | null, message: JsMsg): Promise<boolean> {
    if (!(await this.#writeAnchor(sessionId, tail))) return false;
    const view = this.#views.get(sessionId);
    const digest = message.headers?.get(headerNames.digest) || null;
    if (view !== undefined && message.info.pending === 0 && fenceOf(message) === (tail?.seq ?? 0)) {
      const { subject, seq, data, time } = message;
      const input = await this.#deps.bus.journal.decodeInput(subject, seq, data, digest, time.getTime());
      if (input !== null) this.#firstInputs.set(view, input);
    }
    return true;
  }

  /** False when there is a newer commit than `tail`. */
  async #writeAnchor(sessionId: string, tail: StoredCommit | null): Promise<boolean> {
    const before = tail?.commit;
    const commit: Commit = {
      v: 1,
      commit_id: randomId(),
      seq_no: (before?.seq_no ?? 0) + 1,
      session_id: sessionId,
      workspace: before?.workspace ?? "default",
      turn_id: before?.turn_id ?? "",
      owner: { instance: this.#deps.bus.instance, epoch: before?.owner.epoch ?? 0 },
      anchor: 0,
      takeovers: 0,
      cursor: before?.cursor ?? 0,
      pending: before?.pending ?? [],
      state: before?.state ?? null,
      entries: [],
      events: [],
      ledger: [],
      timers: before?.timers ?? [],
      at: this.#deps.now(),
    };
    const result = await this.#deps.bus.journal.commit("step", commit, { on: "commits", seq: tail?.seq ?? 0 });
    if (result.kind === "stale") return false;
    const view = this.#views.get(sessionId) ?? (tail === null ? emptyView(sessionId) : undefined);
    if (view !== undefined && (view.tail?.seq ?? 0) === (tail?.seq ?? 0)) {
      this.#views.put(applyCommit(view, { seq: result.seq, kind: "step", commit }));
    }
    return true;
  }

  /** Rule 2. */
  async #onAnchor(sessionId: string, message: JsMsg): Promise<void> {
    const runner = this.#runners.get(sessionId);
    if (runner?.anchorSeq === message.seq) return runner.replaceHandle(handleOf(message));
    // Only a later anchor can have made it the runner of this session.
    if (runner !== undefined && runner.anchorSeq > message.seq) return message.ack();
    if (runner !== undefined) return this.#replaceRunner(sessionId, runner, message);
    const view = await this.#viewAt(sessionId, message);
    const tail = view.tail;
    if (tail === null || tail.seq < message.seq) return message.nak(100);
    const isMine = tail.seq === message.seq;
    const isTakeover = tail.kind === "run" && tail.commit.anchor === message.seq;
    if (!isMine && !isTakeover) return message.ack();
    if (!isTakeover)
      return this.#own(view, message, { anchorSeq: message.seq, epoch: tail.commit.owner.epoch + 1, takeovers: 0 });
    await this.#takeOver(view, tail, message);
  }

  /** Another anchor of a session that runs here: the old ownership is over once the tail no longer names it. */
  async #replaceRunner(sessionId: string, runner: SessionRunner, message: JsMsg): Promise<void> {
    const tail = await this.#deps.bus.journal.tail(sessionId, { fresh: true });
    const isOver = tail !== null && tail.seq >= message.seq && tail.commit.anchor !== runner.anchorSeq;
    if (isOver) {
      runner.abandon();
      this.#runners.delete(sessionId);
      this.#views.drop(sessionId);
    }
    message.nak(isOver ? 50 : 250);
  }

  /** Fences the former owner before any new effect (I2). */
  async #takeOver(view: SessionView, tail: StoredCommit, message: JsMsg): Promise<void> {
    const { handover, ...before } = tail.commit;
    const takeovers = before.takeovers + (handover === true ? 0 : 1);
    const epoch = before.owner.epoch + 1;
    const commit: Commit = {
      ...before,
      commit_id: randomId(),
      seq_no: before.seq_no + 1,
      owner: { instance: this.#deps.bus.instance, epoch },
      takeovers,
      entries: [],
      events: [],
      ledger: [],
      at: this.#deps.now(),
    };
    const result = await this.#deps.bus.journal.commit("run", commit, { on: "commits", seq: tail.seq });
    this.#deps.metrics.committed("run", commit, result.kind === "stored");
    if (result.kind === "stale") return message.nak(100);
    this.#deps.metrics.takenOver(handover === true ? "handover" : "crash");
    applyCommit(view, { seq: result.seq, kind: "run", commit });
    this.#own(view, message, { anchorSeq: message.seq, epoch, takeovers });
  }

  #own(view: SessionView, message: JsMsg, ownership: { anchorSeq: number; epoch: number; takeovers: number }): void {
    const first = this.#firstInputs.get(view);
    this.#firstInputs.delete(view);
    const isFirst = first !== undefined && first.seq > (view.tail?.commit.cursor ?? 0);
    const runner = new SessionRunner(this.#deps, view, handleOf(message), ownership, isFirst ? first : null);
    this.#runners.set(view.session_id, runner);
    const ended = runner.run().finally(() => {
      if (this.#runners.get(view.session_id) === runner) this.#runners.delete(view.session_id);
      this.#ended.delete(ended);
    });
    this.#ended.add(ended);
  }

  /** D3: an anchor that comes for the first time needs no reading when the session is known up to it. */
  async #viewAt(sessionId: string, message: JsMsg): Promise<SessionView> {
    const kept = this.#views.get(sessionId);
    const isKnown = kept?.tail?.seq === message.seq && message.info.deliveryCount === 1;
    return kept !== undefined && isKnown ? kept : this.#load(sessionId);
  }

  /** The session as of now: what is kept in memory and the commits after it. */
  async #load(sessionId: string): Promise<SessionView> {
    const kept = this.#views.get(sessionId) ?? emptyView(sessionId);
    const later = await this.#deps.bus.journal.readCommits(sessionId, (kept.tail?.seq ?? 0) + 1);
    for (const stored of later) applyCommit(kept, stored);
    this.#views.put(kept);
    return kept;
  }
}

/** R3: from taking on, however long the reading of a large session takes; its owner goes on with it. */
async function holding(message: JsMsg, work: () => Promise<void>): Promise<void> {
  const heartbeat = setInterval(() => message.working(), heartbeatMs);
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
  }
}

function handleOf(message: JsMsg): { ack(): void; nak(delayMs?: number): void; working(): void } {
  return { ack: () => message.ack(), nak: (delayMs) => message.nak(delayMs), working: () => message.working() };
}

/** An input that was stored under a fence on the whole session carries it: nothing came between that sequence and the input. */
function fenceOf(message: JsMsg): number | null {
  const fence = message.headers?.get("Nats-Expected-Last-Subject-Sequence") ?? "";
  const subject = message.headers?.get("Nats-Expected-Last-Subject-Sequence-Subject") ?? "";
  return subject.endsWith(".>") && /^\d+$/.test(fence) ? Number(fence) : null;
}

/** 250 ms doubling with the delivery count to 5 s. */
function backoffMs(message: JsMsg): number {
  return Math.min(250 * 2 ** (message.info.deliveryCount - 1), 5_000);
}
