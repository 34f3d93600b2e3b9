// The token frames of one message: each piece at once on core NATS, joined pieces in the stored deltas for resuming.
//
// 1. Frames leave in (block, offset) order; `write` to a block ends all blocks before it.
// 2. An offset counts UTF-16 units, and no frame begins or ends inside a surrogate pair.
// 3. At most one store is under way; what comes meanwhile is joined into the next.
import type { Bus } from "@flotilla/bus";
import { type BlockKind, subjects, type TokenFrame } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";

/** The part of a bus that frames need. */
export interface FrameBus {
  readonly nc: Pick<Bus["nc"], "publish">;
  readonly deltas: Pick<Bus["deltas"], "append">;
}

export interface FrameEmitterOptions {
  readonly bus: FrameBus;
  readonly logger: Logger;
  /** Without a session and a message nothing is emitted. */
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly turnId: string | undefined;
  /** Longest time that text waits to be stored. @default 100 */
  readonly storeAfterMs?: number;
  /** Stored earlier when this much waits. @default 1024 */
  readonly storeAfterBytes?: number;
}

export interface FrameEmitter {
  /** Text of a block of the final content array; blocks come in order. */
  write(block: number, kind: BlockKind, text: string): void;
  /** At least one frame of text or thinking went out. */
  readonly streamed: boolean;
  /** At least one frame of any kind went out: a client has seen this message. */
  readonly framed: boolean;
  /** Sends what is held back and resolves when it is stored. Contract: never throws. */
  flush(): Promise<void>;
}

const silent: FrameEmitter = { write: () => {}, streamed: false, framed: false, flush: async () => {} };

export function createFrameEmitter(options: FrameEmitterOptions): FrameEmitter {
  const { bus, logger, sessionId, messageId, turnId } = options;
  if (sessionId === undefined || messageId === undefined) return silent;
  return new SessionFrames({
    logger,
    identity: { turn_id: turnId ?? "", message_id: messageId },
    publish: (frame) => bus.nc.publish(subjects.tokens(sessionId), JSON.stringify(frame)),
    store: (frames) => bus.deltas.append(sessionId, messageId, frames),
    storeAfterMs: options.storeAfterMs ?? 100,
    storeAfterBytes: options.storeAfterBytes ?? 1024,
  });
}

interface SessionFramesOptions {
  readonly logger: Logger;
  readonly identity: Pick<TokenFrame, "turn_id" | "message_id">;
  readonly publish: (frame: TokenFrame) => void;
  readonly store: (frames: readonly TokenFrame[]) => Promise<void>;
  readonly storeAfterMs: number;
  readonly storeAfterBytes: number;
}

interface OpenBlock {
  readonly block: number;
  readonly kind: BlockKind;
  offset: number;
  /** The first half of a surrogate pair whose second half has not come. */
  held: string;
}

class SessionFrames implements FrameEmitter {
  streamed = false;
  readonly #options: SessionFramesOptions;
  #open: OpenBlock | null = null;
  #count = 0;
  #waiting: TokenFrame[] = [];

  get framed(): boolean {
    return this.#count > 0;
  }
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #storing: Promise<void> | null = null;
  #hasWarned = false;

  constructor(options: SessionFramesOptions) {
    this.#options = options;
  }

  write(block: number, kind: BlockKind, text: string): void {
    if (this.#open !== null && block < this.#open.block) {
      throw new RangeError(`a frame of block ${block} after one of block ${this.#open.block}`);
    }
    if (this.#open === null || block > this.#open.block) {
      this.#endBlock();
      this.#open = { block, kind, offset: 0, held: "" };
    }
    const whole = this.#open.held + text;
    const cut = isHighSurrogate(whole.charCodeAt(whole.length - 1)) ? whole.length - 1 : whole.length;
    this.#open.held = whole.slice(cut);
    this.#emit(this.#open, whole.slice(0, cut));
  }

  async flush(): Promise<void> {
    this.#endBlock();
    this.#stopTimer();
    await this.#storing;
    // A failed store puts its frames back: one more attempt, then the reader takes the rest from the message itself.
    for (let attempt = 0; attempt < 2 && this.#waiting.length > 0; attempt++) await this.#storeWaiting();
  }

  #endBlock(): void {
    if (this.#open === null || this.#open.held === "") return;
    const lone = this.#open.held.toWellFormed();
    this.#open.held = "";
    this.#emit(this.#open, lone);
  }

  #emit(open: OpenBlock, text: string): void {
    if (text === "") return;
    const { block, kind, offset } = open;
    const frame: TokenFrame = {
      ...this.#options.identity,
      n: this.#count,
      block,
      kind,
      offset,
      text: text.toWellFormed(),
    };
    this.#count += 1;
    open.offset += text.length;
    if (kind !== "function_call") this.streamed = true;
    try {
      this.#options.publish(frame);
    } catch (error) {
      this.#warn("token frames cannot be published", error);
    }
    this.#enqueue(frame);
  }

  #enqueue(frame: TokenFrame): void {
    const last = this.#waiting.at(-1);
    if (last !== undefined && last.block === frame.block && last.offset + last.text.length === frame.offset) {
      this.#waiting[this.#waiting.length - 1] = { ...last, text: last.text + frame.text };
    } else {
      this.#waiting.push(frame);
    }
    this.#waitingBytes += Buffer.byteLength(frame.text);
    if (this.#storing !== null) return;
    if (this.#waitingBytes >= this.#options.storeAfterBytes) this.#startStore();
    else this.#timer ??= setTimeout(() => this.#startStore(), this.#options.storeAfterMs);
  }

  #startStore(): void {
    this.#stopTimer();
    this.#storing ??= this.#storeWaiting().finally(() => {
      this.#storing = null;
      if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#startStore(), this.#options.storeAfterMs);
    });
  }

  async #storeWaiting(): Promise<void> {
    const frames = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      await this.#options.store(frames);
    } catch (error) {
      this.#waiting.unshift(...frames);
      this.#warn("token frames cannot be stored", error);
    }
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #warn(message: string, error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const text = error instanceof Error ? error.message : String(error);
    this.#options.logger.warn(message, { ...this.#options.identity, error: text });
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
