// The text of one streaming message, sent without gap or overlap whatever order its pieces come in.
//
// M1 A piece is sent only when it continues the block exactly where the text sent so far ends; what lies beyond is held.
// M2 The next block is begun only on proof that the one before it has ended: two frames in a row, or the final message.
// M3 A surrogate pair is never cut.
import type { AssistantMessage, BlockKind, TokenFrame } from "@flotilla/contracts";
import type { TextPosition } from "./position.ts";

export interface Piece {
  readonly block: number;
  readonly kind: BlockKind;
  readonly offset: number;
  readonly text: string;
}

interface Edge {
  readonly block: number;
  readonly end: number;
}

/** Before the first block; its end is known from the start. */
const beforeAll = -1;
/** Text held for one message beyond a gap; more than this is left to the final message. */
const heldLimit = 4 * 1024 * 1024;

export class OpenMessage {
  readonly id: string;
  #block: number;
  #offset: number;
  #held: TokenFrame[] = [];
  #heldUnits = 0;
  /** M2: where a block ends and which one comes after it. */
  readonly #next = new Map<number, { end: number; block: number }>();
  #lastLive: (Edge & { n: number }) | null = null;
  #lastStored: Edge | null = null;
  #hasMissed: boolean;

  constructor(id: string, from: TextPosition | null = null) {
    this.id = id;
    this.#block = from?.block ?? beforeAll;
    this.#offset = from?.offset ?? 0;
    this.#hasMissed = from !== null;
  }

  /** How far the text has been sent; null while nothing has. */
  get position(): TextPosition | null {
    return this.#block === beforeAll ? null : { messageId: this.id, block: this.#block, offset: this.#offset };
  }

  /** Whether every live frame from the first on has come; otherwise only the stored ones can complete call blocks. */
  get isFollowed(): boolean {
    return this.#lastLive !== null && !this.#hasMissed;
  }

  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /** One frame at wire speed. */
  live(frame: TokenFrame): Piece[] {
    const before = this.#lastLive;
    if (before !== null && frame.n <= before.n) return [];
    if (frame.n === 0) this.#follows({ block: beforeAll, end: 0 }, frame.block);
    if (before !== null && frame.n === before.n + 1) this.#follows(before, frame.block);
    if (frame.n !== (before?.n ?? -1) + 1) this.#hasMissed = true;
    this.#lastLive = { n: frame.n, block: frame.block, end: frame.offset + frame.text.length };
    this.#hold(frame);
    return this.#pump();
  }

  /** Joined frames in stored order; `isWhole` when they are all there are from the message's beginning. */
  stored(frames: readonly TokenFrame[], isWhole: boolean): Piece[] {
    if (isWhole || frames[0]?.n === 0) this.#lastStored = { block: beforeAll, end: 0 };
    for (const frame of frames) {
      if (this.#lastStored !== null) this.#follows(this.#lastStored, frame.block);
      this.#lastStored = { block: frame.block, end: frame.offset + frame.text.length };
      this.#hold(frame);
    }
    return this.#pump();
  }

  /** What the final message holds beyond the text sent; call blocks from the frames held, if there are any. */
  finish(message: AssistantMessage): Piece[] {
    const pieces: Piece[] = [];
    for (const [index, block] of message.content.entries()) {
      if (index < this.#block || block.type === "image") continue;
      if (index > this.#block) this.#moveTo(index);
      if (block.type === "function_call") {
        pieces.push(...this.#pump());
        continue;
      }
      const text = block.text.slice(this.#offset);
      if (text.length === 0) continue;
      pieces.push({ block: index, kind: block.type, offset: this.#offset, text });
      this.#offset += text.length;
    }
    return pieces;
  }

  #follows(edge: Edge, block: number): void {
    if (block > edge.block) this.#next.set(edge.block, { end: edge.end, block });
  }

  #hold(frame: TokenFrame): void {
    if (this.#isSent(frame)) return;
    if (this.#heldUnits > heldLimit) {
      this.#hasMissed = true;
      return;
    }
    this.#held.push(frame);
    this.#heldUnits += frame.text.length;
  }

  #isSent(frame: TokenFrame): boolean {
    return (
      frame.block < this.#block || (frame.block === this.#block && frame.offset + frame.text.length <= this.#offset)
    );
  }

  #pump(): Piece[] {
    const pieces: Piece[] = [];
    for (;;) {
      const piece = this.#contiguous();
      if (piece !== null) {
        pieces.push(piece);
        this.#offset += piece.text.length;
      }
      const next = this.#next.get(this.#block);
      if (next === undefined || this.#offset < next.end) break;
      this.#moveTo(next.block);
    }
    this.#held = this.#held.filter((frame) => !this.#isSent(frame));
    this.#heldUnits = this.#held.reduce((sum, frame) => sum + frame.text.length, 0);
    return pieces;
  }

  #moveTo(block: number): void {
    this.#block = block;
    this.#offset = 0;
  }

  /** M1: everything held that continues the open block without a gap. */
  #contiguous(): Piece | null {
    const frames = this.#held.filter((frame) => frame.block === this.#block).sort((a, b) => a.offset - b.offset);
    let text = "";
    let kind: BlockKind = "text";
    for (const frame of frames) {
      const at = this.#offset + text.length;
      if (frame.offset > at) break;
      if (frame.offset + frame.text.length <= at) continue;
      kind = frame.kind;
      text += frame.text.slice(at - frame.offset);
    }
    const whole = endsInsidePair(text) ? text.slice(0, -1) : text;
    return whole.length === 0 ? null : { block: this.#block, kind, offset: this.#offset, text: whole };
  }
}

/** M3: whether the last unit is the first half of a pair whose second half has not come yet. */
function endsInsidePair(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
