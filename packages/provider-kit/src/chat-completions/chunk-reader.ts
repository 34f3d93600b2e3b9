// Chunks of a Chat Completions stream into an answer.
import type { Answer, AnswerBlock } from "../answer.ts";
import { asArray, asRecord, asText, type JsonRecord } from "../json.ts";
import type { TokenCounts } from "../pricing.ts";
import { chatUsage } from "./chat-usage.ts";

export interface ChunkReader {
  take(chunk: JsonRecord): void;
  /** The last one that came; null until the answer is complete. */
  readonly finishReason: string | null;
  readonly refusal: string;
  readonly usage: TokenCounts | null;
}

export function createChunkReader(answer: Answer): ChunkReader {
  const prose = createProse(answer);
  const calls = createCalls(answer);
  let finishReason: string | null = null;
  let refusal = "";
  let usage: TokenCounts | null = null;
  return {
    take(chunk) {
      const choice = asRecord(asArray(chunk.choices).find((item) => (asRecord(item)?.index ?? 0) === 0));
      // Totals repeat: in every chunk, in the last choice, in a chunk of their own. The last ones count.
      usage = chatUsage(chunk.usage) ?? chatUsage(choice?.usage) ?? usage;
      if (choice === null) return;
      // A server that does not stream sends the whole message at once.
      const delta = asRecord(choice.delta) ?? asRecord(choice.message);
      if (delta !== null) {
        prose.append("thinking", reasoningOf(delta));
        prose.append("text", contentOf(delta.content));
        refusal += asText(delta.refusal);
        const fragments = [...asArray(delta.tool_calls), ...(asRecord(delta.function_call) ? [legacyCall(delta)] : [])];
        if (fragments.length > 0) prose.end();
        for (const fragment of fragments) calls.append(asRecord(fragment) ?? {});
      }
      if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") finishReason = choice.finish_reason;
    },
    get finishReason() {
      return finishReason;
    },
    get refusal() {
      return refusal;
    },
    get usage() {
      return usage;
    },
  };
}

function reasoningOf(delta: JsonRecord): string {
  return asText(delta.reasoning_content) || asText(delta.reasoning);
}

function contentOf(content: unknown): string {
  if (!Array.isArray(content)) return asText(content);
  return content.map((part) => (asRecord(part)?.type === "text" ? asText(asRecord(part)?.text) : "")).join("");
}

function legacyCall(delta: JsonRecord): JsonRecord {
  return { index: 0, function: delta.function_call };
}

/** Text and thinking: a piece of the other kind, or a call, ends the block. */
function createProse(answer: Answer) {
  let open: AnswerBlock | null = null;
  const end = (): void => {
    if (open !== null) answer.close(open);
    open = null;
  };
  return {
    append(kind: "text" | "thinking", text: string): void {
      if (text === "") return;
      if (open?.kind !== kind) end();
      open ??= answer.open(kind);
      answer.append(open, text);
    },
    end,
  };
}

/** Calls by index, with gaps; id and name in the first fragment only, in every one, or never. */
function createCalls(answer: Answer) {
  const byIndex = new Map<number, AnswerBlock>();
  const byId = new Map<string, AnswerBlock>();
  let newest: AnswerBlock | null = null;

  const blockOf = (fragment: JsonRecord, id: string, name: string): AnswerBlock => {
    const index = typeof fragment.index === "number" ? fragment.index : null;
    const known = index === null ? (byId.get(id) ?? (id === "" && name === "" ? newest : null)) : byIndex.get(index);
    // Some servers number every call 0: another id with a name is another call.
    const isAnother = known != null && id !== "" && name !== "" && known.callId !== "" && known.callId !== id;
    if (known != null && !isAnother) return known;
    const block = byId.get(id) ?? answer.open("function_call");
    if (index !== null) byIndex.set(index, block);
    return block;
  };

  return {
    append(fragment: JsonRecord): void {
      const fn = asRecord(fragment.function) ?? {};
      const id = asText(fragment.id);
      const name = asText(fn.name);
      const block = blockOf(fragment, id, name);
      newest = block;
      if (id !== "") {
        block.callId = id;
        byId.set(id, block);
      }
      if (name !== "") block.name = name;
      const args = fn.arguments;
      answer.append(block, asRecord(args) === null ? asText(args) : JSON.stringify(args));
    },
  };
}
