// The answer of one model call while it comes in: its blocks in the order they began, and their frames.
//
// 1. Frames go out in (block, offset) order: text of a later block waits until the earlier ones are closed.
// 2. The block index of a frame is its index in the content, so an empty block must be closed before the next can go out.
import type { BlockKind, ContentBlock, FunctionCallBlock } from "@flotilla/contracts";
import type { FrameEmitter } from "./frame-emitter.ts";
import type { ToolNames } from "./tool-names.ts";

export interface AnswerBlock {
  readonly kind: BlockKind;
  text: string;
  isClosed: boolean;
  /** Thinking: the vendor's seal, replayed with it. */
  signature?: string;
  redacted?: string;
  /** Calls: the vendor's id and the name on its wire; a call without a name is dropped. */
  callId: string;
  name: string;
}

export interface Answer {
  open(kind: BlockKind, fields?: Partial<Pick<AnswerBlock, "callId" | "name" | "redacted" | "signature">>): AnswerBlock;
  append(block: AnswerBlock, text: string): void;
  close(block: AnswerBlock): void;
  /** The content so far; `calls` says which calls may be run. */
  content(calls: "all" | "whole" | "none"): ContentBlock[];
}

export function createAnswer(deps: {
  readonly frames: FrameEmitter;
  readonly names: ToolNames;
  readonly newCallId: () => string;
}): Answer {
  const blocks: AnswerBlock[] = [];
  let head = 0;
  let emitted = 0;
  let kept = 0;

  const advance = (): void => {
    for (let block = blocks[head]; block !== undefined; block = blocks[head]) {
      const isHeld = block.kind === "function_call" && block.name === "";
      if (!isHeld && emitted < block.text.length) {
        deps.frames.write(kept, block.kind, block.text.slice(emitted));
        emitted = block.text.length;
      }
      if (!block.isClosed) return;
      if (isKept(block)) kept += 1;
      head += 1;
      emitted = 0;
    }
  };

  return {
    open(kind, fields = {}) {
      const block: AnswerBlock = { kind, text: "", isClosed: false, callId: "", name: "", ...fields };
      // A call whose arguments are a whole object already gets no more: what comes behind need not wait for it.
      for (const earlier of blocks.slice(head)) {
        if (earlier.kind === "function_call" && hasWholeArguments(earlier)) earlier.isClosed = true;
      }
      blocks.push(block);
      advance();
      return block;
    },
    append(block, text) {
      if (text === "") return;
      block.text += text;
      if (blocks.indexOf(block) >= head) advance();
    },
    close(block) {
      block.isClosed = true;
      advance();
    },
    content(calls) {
      for (const block of blocks) block.isClosed = true;
      advance();
      return blocks.filter(isKept).flatMap((block) => {
        if (block.kind !== "function_call") return [proseOf(block)];
        if (calls === "none" || (calls === "whole" && !hasWholeArguments(block))) return [];
        block.callId ||= deps.newCallId();
        return [callOf(block, deps.names)];
      });
    },
  };
}

function isKept(block: AnswerBlock): boolean {
  if (block.kind === "function_call") return block.name !== "";
  return block.text !== "" || block.signature !== undefined || block.redacted !== undefined;
}

function proseOf(block: AnswerBlock): ContentBlock {
  const text = block.text.toWellFormed();
  if (block.kind === "text") return { type: "text", text };
  return {
    type: "thinking",
    text,
    ...(block.signature === undefined ? {} : { signature: block.signature }),
    ...(block.redacted === undefined ? {} : { redacted: block.redacted }),
  };
}

function callOf(block: AnswerBlock, names: ToolNames): FunctionCallBlock {
  return {
    type: "function_call",
    id: block.callId,
    function_id: names.functionId(block.name),
    arguments: parseArguments(block.text),
    provider_call_id: block.callId,
  };
}

/** No arguments are an empty object; what is no JSON stays as the model wrote it. */
export function parseArguments(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    // Kept: the caller answers the model with an error that names it.
    return text;
  }
}

/** Objects and arrays say themselves where they end; anything else may be the beginning of something longer. */
function hasWholeArguments(block: AnswerBlock): boolean {
  const text = block.text.trimEnd();
  if (!text.endsWith("}") && !text.endsWith("]")) return false;
  return typeof parseArguments(text) === "object";
}
