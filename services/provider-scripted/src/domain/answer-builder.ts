// The answer while it is played: content blocks, each piece sent as a frame, and the words said.
import type { BlockKind, ContentBlock } from "@flotilla/contracts";
import { countWords } from "./pieces.ts";

export interface FrameSink {
  write(block: number, kind: BlockKind, text: string): void;
}

export class AnswerBuilder {
  readonly content: ContentBlock[] = [];
  /** Words of `say` and `tokens` that went out. */
  words = 0;
  readonly #frames: FrameSink;
  readonly #callIdOf: (index: number) => string;
  #calls = 0;

  constructor(frames: FrameSink, callIdOf: (index: number) => string) {
    this.#frames = frames;
    this.#callIdOf = callIdOf;
  }

  /** Follows the last block when that is of the same kind. */
  append(kind: "text" | "thinking", piece: string): void {
    if (piece === "") return;
    const last = this.content.at(-1);
    if (last?.type === kind) last.text += piece;
    else this.content.push({ type: kind, text: piece });
    if (kind === "text") this.words += countWords(piece);
    this.#frames.write(this.content.length - 1, kind, piece);
  }

  call(functionId: string, args: unknown): void {
    const id = this.#callIdOf(this.#calls);
    this.#calls += 1;
    this.content.push({ type: "function_call", id, function_id: functionId, arguments: args, provider_call_id: id });
    this.#frames.write(this.content.length - 1, "function_call", JSON.stringify(args));
  }

  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** The last block is text and does not end in white space. */
  get endsInWord(): boolean {
    const last = this.content.at(-1);
    return last?.type === "text" && /\S$/.test(last.text);
  }
}
