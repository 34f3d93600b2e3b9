// One client's event stream of a session as a state machine: commits, frames and stored chunks in, ordered events out.
//
// S1 Commits are applied in the order of the journal, each once; a commit that does not follow the last one is a gap.
// S2 Every id is the position after its event: resuming with it continues there, on any replica (I10).
// S3 Text of a message goes out only while the message is open, and completely before its `message_complete`.
import type { AgentMessage, StoredCommit, TokenFrame, WireEvent } from "@flotilla/contracts";
import { expandEvent, foreignEntries } from "./expand.ts";
import { OpenMessage, type Piece } from "./open-message.ts";
import { formatPosition, type Position, type TextPosition } from "./position.ts";

export interface SentEvent {
  readonly id: string;
  readonly event: WireEvent;
}

/** What must be read before a commit can be applied. */
export interface Needs {
  /** Entries of earlier commits. */
  readonly entries: readonly string[];
  /** Messages whose stored chunks are needed to complete their call blocks. */
  readonly deltas: readonly string[];
}

type Early = { kind: "live"; frame: TokenFrame } | { kind: "stored"; frames: readonly TokenFrame[]; isWhole: boolean };

/** Messages whose frames came before the commit that opens them; more than this many are left to the stored chunks. */
const earlyMessages = 4;
const earlyItems = 4_096;
const closedRemembered = 64;

export class SessionStream {
  #seq: number;
  #index: number;
  #seenSeq = 0;
  #seqNo = 0;
  #open: OpenMessage | null = null;
  /** The text position the client came with, until its message is opened and ended. */
  #resume: TextPosition | null;
  readonly #closed: string[] = [];
  readonly #early = new Map<string, Early[]>();
  #entries = new Map<string, AgentMessage>();

  constructor(from: Position) {
    this.#seq = from.seq;
    this.#index = from.index;
    this.#resume = from.text;
  }

  /** Sequence of the newest commit applied; 0 before the first. */
  get seenSeq(): number {
    return this.#seenSeq;
  }

  get openMessageId(): string | null {
    return this.#open?.id ?? null;
  }

  /** Whether something waits for what only the journal or the stored chunks can tell. */
  get isWaiting(): boolean {
    return this.#early.size > 0 || (this.#open?.isHolding ?? false);
  }

  /** S1: how a commit stands to those applied so far. */
  order(stored: StoredCommit): "next" | "seen" | "gap" {
    if (stored.seq <= this.#seenSeq) return "seen";
    return stored.commit.seq_no === this.#seqNo + 1 ? "next" : "gap";
  }

  needs(stored: StoredCommit): Needs {
    if (stored.seq < this.#seq) return { entries: [], deltas: [] };
    const entries = foreignEntries(stored.commit).filter((id) => !this.#entries.has(id));
    const deltas = stored.commit.events.flatMap((event) => {
      if (event.type !== "message_complete") return [];
      const message = stored.commit.entries.find((entry) => entry.id === event.entry_id)?.message;
      const hasCalls = message?.role === "assistant" && message.content.some((block) => block.type === "function_call");
      const isKnown = this.#open?.id === event.message_id && this.#open.isFollowed;
      return hasCalls && !isKnown ? [event.message_id] : [];
    });
    return { entries, deltas };
  }

  remember(entryId: string, message: AgentMessage): void {
    this.#entries.set(entryId, message);
  }

  /** Applies a commit that is newer than the last one; those before the position only set the state. */
  apply(stored: StoredCommit, deltas: ReadonlyMap<string, readonly TokenFrame[]> = new Map()): SentEvent[] {
    const { commit } = stored;
    this.#seenSeq = stored.seq;
    this.#seqNo = commit.seq_no;
    for (const entry of commit.entries) this.#entries.set(entry.id, entry.message);
    const sent: SentEvent[] = [];
    const first = stored.seq > this.#seq ? 0 : stored.seq === this.#seq ? this.#index + 1 : Number.POSITIVE_INFINITY;
    for (const [index, event] of commit.events.entries()) {
      if (index >= first) {
        if (event.type === "message_complete") sent.push(...this.#complete(event.message_id, event, deltas));
        this.#closeIfEnded(event);
        const wire = expandEvent(event, commit, (id) => this.#entries.get(id));
        this.#seq = stored.seq;
        this.#index = index;
        sent.push({ id: this.#id(), event: wire });
      } else {
        this.#closeIfEnded(event);
      }
    }
    if (commit.events.some((event) => event.type === "turn_end")) this.#entries = new Map();
    sent.push(...this.#openNext(stored));
    return sent;
  }

  frame(frame: TokenFrame): SentEvent[] {
    if (this.#open?.id === frame.message_id) return this.#updates(this.#open, this.#open.live(frame));
    this.#keep(frame.message_id, { kind: "live", frame });
    return [];
  }

  chunk(messageId: string, frames: readonly TokenFrame[], isWhole: boolean): SentEvent[] {
    if (this.#open?.id === messageId) return this.#updates(this.#open, this.#open.stored(frames, isWhole));
    this.#keep(messageId, { kind: "stored", frames, isWhole });
    return [];
  }

  #complete(
    messageId: string,
    event: { entry_id: string; body_streamed: boolean },
    deltas: ReadonlyMap<string, readonly TokenFrame[]>,
  ): SentEvent[] {
    const message = this.#entries.get(event.entry_id);
    if (message?.role !== "assistant") return [];
    const open = this.#open?.id === messageId ? this.#open : this.#openMessage(messageId);
    this.#open = open;
    const stored = deltas.get(messageId);
    const sent = stored === undefined ? [] : this.#updates(open, open.stored(stored, true));
    if (!event.body_streamed && open.position === null) return sent;
    return [...sent, ...this.#updates(open, open.finish(message))];
  }

  /** S3: after its end nothing of the message goes out. */
  #closeIfEnded(event: { type: string; message_id?: string }): void {
    if (event.type !== "message_complete" && event.type !== "message_aborted") return;
    const id = event.message_id ?? "";
    this.#closed.push(id);
    if (this.#closed.length > closedRemembered) this.#closed.shift();
    this.#early.delete(id);
    if (this.#open?.id === id) this.#open = null;
    if (this.#resume?.messageId === id) this.#resume = null;
  }

  #openMessage(id: string): OpenMessage {
    return new OpenMessage(id, this.#resume?.messageId === id ? this.#resume : null);
  }

  #openNext(stored: StoredCommit): SentEvent[] {
    const call = stored.commit.state?.model_call;
    const id = call == null || call.retry_at_ms !== undefined ? null : call.message_id;
    if (id === this.#open?.id) return [];
    this.#open = id === null || this.#closed.includes(id) ? null : this.#openMessage(id);
    const { openMessageId } = this;
    if (openMessageId === null) return [];
    const early = this.#early.get(openMessageId) ?? [];
    this.#early.clear();
    return early.flatMap((item) =>
      item.kind === "live" ? this.frame(item.frame) : this.chunk(openMessageId, item.frames, item.isWhole),
    );
  }

  #keep(messageId: string, item: Early): void {
    if (this.#closed.includes(messageId)) return;
    const kept = this.#early.get(messageId) ?? [];
    if (kept.length >= earlyItems) return;
    kept.push(item);
    this.#early.set(messageId, kept);
    const [oldest] = this.#early.keys();
    if (this.#early.size > earlyMessages && oldest !== undefined) this.#early.delete(oldest);
  }

  #updates(open: OpenMessage, pieces: readonly Piece[]): SentEvent[] {
    return pieces.map((piece) => {
      const text = { messageId: open.id, block: piece.block, offset: piece.offset + piece.text.length };
      const { block: index, kind, offset, text: delta } = piece;
      const event: WireEvent = { type: "message_update", message_id: open.id, index, offset, kind, delta };
      return { id: formatPosition({ seq: this.#seq, index: this.#index, text }), event };
    });
  }

  #id(): string {
    return formatPosition({ seq: this.#seq, index: this.#index, text: this.#open?.position ?? this.#resume });
  }
}
