// The owner of one running session: holds its anchor, runs its steps inline, and commits them under the fence (I2, I3).
//
// R1 Effects start only from committed intents (I4); a refused commit ends the ownership before any further effect.
// R2 The cursor moves only over inputs that were read from the journal in order; live notices are no more than a bell (I6).
// R3 The anchor is acknowledged only after the idle commit; heartbeats come from a timer, never from step code.
import type { Watch } from "@flotilla/bus";
import {
  applyCommit,
  type Commit,
  type CommitKind,
  isTerminalState,
  randomId,
  type SessionView,
  type StoredInput,
  shardOf,
} from "@flotilla/contracts";
import { ensureFlotillaError, FlotillaError } from "@flotilla/errors";
import { type Draft, draftFrom } from "../domain/draft.ts";
import { type Asked, nextWaiting, nothingAsked, refuse, takeInputs } from "../domain/take-inputs.ts";
import { failTurn } from "./abort.ts";
import { Effects } from "./effects.ts";
import { stepIdle } from "./step-idle.ts";
import { stepModel } from "./step-model.ts";
import { settleWindowMs, stepTools } from "./step-tools.ts";
import { TurnTrace } from "./turn-trace.ts";
import type { Decision, EngineDeps, StepContext } from "./types.ts";
import { Wake } from "./wake.ts";

/** The delivered anchor message; replaced when the server delivers it again to this process. */
export interface AnchorHandle {
  ack(): void;
  nak(delayMs?: number): void;
  working(): void;
}

export interface Ownership {
  readonly anchorSeq: number;
  readonly epoch: number;
  readonly takeovers: number;
}

/** Well under the `ack_wait` of the consumer. */
export const heartbeatMs = 600;
/** Inputs that are taken in a commit of their own while a model call runs. */
const crowd = 50;

export class SessionRunner {
  readonly #deps: EngineDeps;
  readonly #view: SessionView;
  readonly #wake = new Wake();
  readonly #effects: Effects;
  readonly #trace: TurnTrace;
  readonly #inputs = new Map<number, StoredInput>();
  readonly #retryDue = new Map<string, number>();
  readonly #resumed: ReadonlySet<string>;
  /** Ids of our commits whose notice has not come yet: it tells us nothing. */
  readonly #ownCommits = new Set<string>();
  #handle: AnchorHandle;
  #ownership: Ownership;
  #fetched: StoredInput[] = [];
  #mustFetch = true;
  #hasFetched = false;
  #watch: Watch | null = null;
  #isReleased = false;
  #handover: Promise<void> | null = null;

  /** `first`: the input right after the cursor, when it is known already; what came after it is read later. */
  constructor(
    deps: EngineDeps,
    view: SessionView,
    handle: AnchorHandle,
    ownership: Ownership,
    first: StoredInput | null,
  ) {
    this.#deps = deps;
    this.#view = view;
    this.#handle = handle;
    this.#ownership = ownership;
    this.#effects = new Effects(deps.bus, deps.now, this.#wake);
    this.#trace = new TurnTrace(deps.bus);
    this.#resumed = openKeys(view);
    if (first === null) return;
    this.#mustFetch = false;
    this.#fetched = [first];
    this.#inputs.set(first.seq, first);
  }

  get anchorSeq(): number {
    return this.#ownership.anchorSeq;
  }

  /** Inputs up to this sequence are taken. */
  get cursor(): number {
    return this.#view.tail?.commit.cursor ?? 0;
  }

  /** The same anchor came again to this process: only the handle changes. */
  replaceHandle(handle: AnchorHandle): void {
    this.#handle = handle;
  }

  /** An input was delivered or announced. */
  notify(): void {
    this.#mustFetch = true;
    this.#wake.ring();
  }

  /** Another owner has the session: stop without touching the anchor or the running calls. */
  abandon(): void {
    this.#isReleased = true;
    this.#effects.release();
    this.#wake.ring();
  }

  /** Runs until the session is idle or the ownership is lost. Never rejects. */
  async run(): Promise<void> {
    const heartbeat = setInterval(() => this.#handle.working(), heartbeatMs);
    const unfollow = this.#deps.bus.onReconnect(() => this.notify());
    try {
      this.#listen();
      await this.#loop();
    } catch (cause) {
      await this.#afterFault(ensureFlotillaError(cause));
    } finally {
      clearInterval(heartbeat);
      unfollow();
      this.#watch?.stop();
      this.#effects.release();
      this.#trace.lost();
    }
  }

  /** SIGTERM: the running calls go on, the successor attaches; a marker keeps this from counting as a crash. */
  async handOver(): Promise<void> {
    this.#isReleased = true;
    this.#wake.ring();
    this.#handover ??= this.#commitHandover();
    await this.#handover;
  }

  async #commitHandover(): Promise<void> {
    const draft = draftFrom(this.#view, this.#deps.now());
    await this.#publish("run", { ...this.#commitOf(draft), handover: true }).catch((error: unknown) => {
      this.#deps.logger.debug("the hand-over marker was not stored", { code: ensureFlotillaError(error).code });
    });
    this.#handle.nak();
  }

  /** Not waited for: what is read next goes over the same connection, so the server subscribes us before it reads. */
  #listen(): void {
    this.#watch = this.#deps.bus.journal.watch(
      this.#view.session_id,
      (message) => {
        if (message.kind === "input") this.notify();
        else if (message.stored.commit.owner.epoch > this.#ownership.epoch) this.abandon();
      },
      (commitId) => this.#ownCommits.delete(commitId),
    );
  }

  async #loop(): Promise<void> {
    while (!this.#isReleased) {
      const draft = draftFrom(this.#view, this.#deps.now());
      const asked = await this.#take(draft);
      const decision = await this.#trace.run(draft.state, this.#ownership, () => this.#step(draft, asked));
      if (this.#isReleased) return;
      if (decision.kind === "wait" && !this.#hasFetched) {
        // R2: while the first effect runs, what was stored before we listened.
        this.#mustFetch = true;
        continue;
      }
      if (decision.kind === "wait" && !this.#isCrowded(draft)) {
        // A notice may get lost with the connection: without one, the journal is looked at all the same.
        if (!(await this.#wake.wait(decision.ms))) this.#mustFetch = true;
        if (this.#view.state?.calls.length) await this.#settleWindow();
        continue;
      }
      const end = decision.kind === "idle" ? await this.#goIdle(draft) : await this.#commitRun(draft);
      if (end === "again") continue;
      await this.#deadLetters(asked);
      if (end === "running") continue;
      this.#handle.ack();
      return;
    }
  }

  /** Many messages wait while the model speaks: taking them now lets the doors see how many there are. */
  #isCrowded(draft: Draft): boolean {
    const isStreaming = draft.state?.state === "assistant_streaming" && draft.state.calls.length === 0;
    return isStreaming && draft.pending.length - (this.#view.tail?.commit.pending.length ?? 0) >= crowd;
  }

  /** Results that end close together are committed together, unless nothing else runs. */
  async #settleWindow(): Promise<void> {
    const running = (this.#view.state?.calls ?? []).filter(
      (call) => call.status === "running" && call.key !== undefined,
    );
    const open = running.filter(
      (call) => call.key !== undefined && this.#effects.has(call.key) && this.#effects.result(call.key) === null,
    );
    if (open.length > 0 && open.length < running.length)
      await new Promise((resolve) => setTimeout(resolve, settleWindowMs));
  }

  /** R2: reads what the journal holds after the cursor, and takes it into the draft. */
  async #take(draft: Draft): Promise<Asked> {
    if (this.#mustFetch) {
      this.#mustFetch = false;
      this.#hasFetched = true;
      this.#fetched = await this.#deps.bus.journal.readInputs(this.#view.session_id, draft.cursor);
      for (const input of this.#fetched) this.#inputs.set(input.seq, input);
    }
    if (this.#fetched.length === 0) return nothingAsked();
    return takeInputs(draft, this.#fetched);
  }

  #step(draft: Draft, asked: Asked): Promise<Decision> {
    const context = this.#context();
    const state = draft.state;
    if (state === null || isTerminalState(state.state)) return stepIdle(context, draft, asked);
    const { takeovers } = this.#ownership;
    if (takeovers > this.#deps.config.FLOTILLA_MAX_TAKEOVERS) {
      const message = `the turn was taken over ${takeovers} times in the same step`;
      return failTurn(context, draft, { kind: "crash_loop", code: "TURN_CRASH_LOOP", message });
    }
    if (state.calls.length > 0) return stepTools(context, draft, asked);
    return stepModel(context, draft, asked);
  }

  #context(): StepContext {
    return {
      deps: this.#deps,
      view: this.#view,
      effects: this.#effects,
      epoch: this.#ownership.epoch,
      isResumed: (key) => this.#resumed.has(key),
      retryDue: (key, due) => {
        const kept = this.#retryDue.get(key) ?? due();
        this.#retryDue.set(key, kept);
        return kept;
      },
      bodyOf: (seq) => this.#bodyOf(seq),
    };
  }

  async #bodyOf(seq: number): Promise<StoredInput> {
    const kept = this.#inputs.get(seq);
    if (kept !== undefined) return kept;
    const { journal } = this.#deps.bus;
    const input = await journal.readInputAt(seq, shardOf(this.#view.session_id, journal.shards));
    if (input === null) throw new FlotillaError("TURN_INVARIANT", `pending input ${seq} is not in the journal`);
    this.#inputs.set(seq, input);
    return input;
  }

  async #commitRun(draft: Draft): Promise<"running"> {
    if (!(await this.#publish("run", this.#commitOf(draft)))) throw lostOwnership();
    return "running";
  }

  /**
   * I6: refused when an input came meanwhile; then the same step is committed as a running one. A message that reached the
   * turn before its end is not late: the step is done again with it.
   */
  async #goIdle(draft: Draft): Promise<"idle" | "running" | "again"> {
    let next = draft;
    for (let tries = 0; tries < 5; tries++) {
      if (hasStart(next)) break;
      if (await this.#publish("idle", this.#commitOf(next))) return "idle";
      this.#mustFetch = true;
      const probe = structuredClone(next);
      const asked = await this.#take(probe);
      if (asked.isInboxWoken && endsByItself(next)) {
        this.#mustFetch = true;
        return "again";
      }
      if (!isInert(asked) || probe.pending.length !== next.pending.length || probe.cursor === next.cursor) break;
      next = probe;
    }
    await this.#commitRun(next);
    this.#mustFetch = true;
    return "running";
  }

  #commitOf(draft: Draft): Commit {
    const tail = this.#view.tail?.commit;
    const { anchorSeq, epoch, takeovers } = this.#ownership;
    return {
      v: 1,
      commit_id: randomId(),
      seq_no: (tail?.seq_no ?? 0) + 1,
      session_id: this.#view.session_id,
      workspace: draft.state?.workspace ?? tail?.workspace ?? "default",
      turn_id: draft.state?.turn_id ?? tail?.turn_id ?? "",
      owner: { instance: this.#deps.bus.instance, epoch },
      anchor: anchorSeq,
      takeovers: draft.isSettled ? 0 : takeovers,
      cursor: draft.cursor,
      pending: draft.pending,
      state: draft.state,
      entries: draft.entries,
      events: draft.events,
      ledger: draft.ledger,
      timers: draft.timers,
      at: this.#deps.now(),
    };
  }

  async #publish(kind: CommitKind, commit: Commit): Promise<boolean> {
    const tailSeq = this.#view.tail?.seq ?? 0;
    const expectation =
      kind === "idle"
        ? { on: "session" as const, seq: Math.max(tailSeq, commit.cursor) }
        : { on: "commits" as const, seq: tailSeq };
    this.#ownCommits.add(commit.commit_id);
    const result = await this.#deps.bus.journal.commit(kind, commit, expectation);
    this.#deps.metrics.committed(kind, commit, result.kind === "stored");
    if (result.kind === "stale") return false;
    applyCommit(this.#view, { seq: result.seq, kind, commit });
    if (kind !== "step" && commit.handover !== true) this.#trace.committed(commit.state, kind);
    this.#ownership = { ...this.#ownership, takeovers: commit.takeovers };
    this.#forgetTaken(commit);
    return true;
  }

  #forgetTaken(commit: Commit): void {
    this.#fetched = this.#fetched.filter((input) => input.seq > commit.cursor);
    const pending = new Set(commit.pending.map((item) => item.seq));
    for (const seq of this.#inputs.keys()) if (seq <= commit.cursor && !pending.has(seq)) this.#inputs.delete(seq);
    const open = openKeys(this.#view);
    for (const record of commit.ledger)
      if (record.kind === "outcome" && record.key !== null && !open.has(record.key)) this.#effects.forget(record.key);
  }

  async #deadLetters(asked: Asked): Promise<void> {
    for (const { input, code, message } of asked.rejected) {
      await this.#deps.ports
        .deadLetter({
          session_id: this.#view.session_id,
          kind: input.kind,
          id: input.id,
          seq: input.seq,
          code,
          message,
          body: input.body,
          at: this.#deps.now(),
        })
        .catch((error: unknown) =>
          this.#deps.logger.warn("a dead letter was not stored", { code: ensureFlotillaError(error).code }),
        );
    }
  }

  /** A lost ownership is normal; the bus being away leaves the anchor to its redelivery; a defect fails the turn. */
  async #afterFault(error: FlotillaError): Promise<void> {
    const meta = { session_id: this.#view.session_id, code: error.code, reason: error.message };
    if (this.#isReleased) return;
    if (error.code === "STALE_EPOCH") {
      this.#deps.logger.debug("another owner has this session", meta);
      return;
    }
    if (error.disposition === "retry") {
      this.#deps.logger.warn("a session was given back", meta);
      this.#handle.nak(1_000);
      return;
    }
    this.#deps.logger.error("a turn failed by a defect", {
      ...meta,
      stack: error.cause instanceof Error ? error.cause.stack : error.stack,
    });
    await this.#failByDefect(error);
  }

  /** What can be neither opened nor applied would hold up everything behind it for ever: it is refused, visibly. */
  async #refuseNext(draft: Draft, error: { code: string; message: string }): Promise<void> {
    this.#mustFetch = true;
    const asked = await this.#take(draft);
    const item = nextWaiting(draft.pending);
    if (item === null) throw new FlotillaError("TURN_INVARIANT", error.message);
    const input = this.#inputs.get(item.seq) ?? { ...item, digest: null, body: null, at: draft.now };
    refuse(draft, asked, input, error);
    draft.isSettled = true;
    await this.#deadLetters(asked);
  }

  async #failByDefect(error: FlotillaError): Promise<void> {
    try {
      const draft = draftFrom(this.#view, this.#deps.now());
      const isDefect = error.disposition === "defect";
      const shown = { code: isDefect ? "INTERNAL" : error.code, message: isDefect ? error.row.title : error.message };
      if (draft.state === null || isTerminalState(draft.state.state)) await this.#refuseNext(draft, shown);
      else await failTurn(this.#context(), draft, { kind: "transition_error", ...shown });
      if ((await this.#goIdle(draft)) === "idle") this.#handle.ack();
      else this.#handle.nak(250);
    } catch (cause) {
      this.#deps.logger.error("a failed turn could not be ended", {
        session_id: this.#view.session_id,
        reason: ensureFlotillaError(cause).message,
      });
      this.#handle.nak(5_000);
    }
  }
}

function lostOwnership(): FlotillaError {
  return new FlotillaError("STALE_EPOCH", "another owner has committed to this session");
}

function openKeys(view: SessionView): Set<string> {
  const keys = new Set<string>();
  const state = view.state;
  if (state?.model_call != null && state.model_call.retry_at_ms === undefined) keys.add(state.model_call.key);
  for (const call of state?.calls ?? []) if (call.status === "running" && call.key !== undefined) keys.add(call.key);
  return keys;
}

/** Stopping with a queued start is not idle: the next commit opens its turn. */
function hasStart(draft: Draft): boolean {
  const isOver = draft.state === null || isTerminalState(draft.state.state);
  return isOver && draft.pending.some((item) => item.kind === "start");
}

/** Ended by its model, and nothing of it is stored yet. */
function endsByItself(draft: Draft): boolean {
  return draft.events.some((event) => event.type === "agent_end" && event.reason === "end");
}

function isInert(asked: Asked): boolean {
  return (
    asked.rejected.length === 0 &&
    asked.abort === null &&
    !asked.isInterrupted &&
    !asked.isSteered &&
    asked.decisions.length === 0 &&
    asked.fired.length === 0 &&
    !asked.isInboxWoken
  );
}
