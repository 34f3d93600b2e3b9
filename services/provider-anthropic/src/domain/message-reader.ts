// Events of a Messages stream into an answer, by block index, in the order in which blocks began.
import {
  type Answer,
  type AnswerBlock,
  asArray,
  asCount,
  asRecord,
  asText,
  type JsonRecord,
  type TokenCounts,
} from "@flotilla/provider-kit";

export interface MessageReader {
  take(event: JsonRecord): void;
  /** The terminal signal came. */
  readonly isStopped: boolean;
  readonly stopReason: string | null;
  readonly usage: TokenCounts | null;
  /** At least one call came. */
  readonly hasCalls: boolean;
  /** The blocks as the API wants them back when a paused turn goes on. */
  raw(): JsonRecord[];
}

interface Slot {
  /** Null for kinds that are not ours: a server's own tools and their results. */
  readonly block: AnswerBlock | null;
  readonly raw: JsonRecord;
  json: string;
}

export function createMessageReader(answer: Answer): MessageReader {
  const slots = new Map<unknown, Slot>();
  let totals: JsonRecord = {};
  let stopReason: string | null = null;
  let isStopped = false;

  const slotOf = (index: unknown, start: JsonRecord): Slot => {
    const slot = { block: openBlock(answer, start), raw: { ...start }, json: "" };
    slots.set(index, slot);
    return slot;
  };
  const finish = (slot: Slot): void => {
    const { block, raw } = slot;
    // Some servers send a call's input whole, with the start.
    if (block?.kind === "function_call" && block.text === "" && !isEmpty(raw.input))
      answer.append(block, JSON.stringify(raw.input));
    if (block !== null) answer.close(block);
  };
  const mergeUsage = (usage: unknown): void => {
    const known = Object.entries(asRecord(usage) ?? {}).filter(([, value]) => value !== null && value !== undefined);
    totals = { ...totals, ...Object.fromEntries(known) };
  };

  return {
    take(event) {
      if (event.type === "message_start") mergeUsage(asRecord(event.message)?.usage);
      else if (event.type === "content_block_start") slotOf(event.index, asRecord(event.content_block) ?? {});
      else if (event.type === "content_block_delta") {
        const delta = asRecord(event.delta) ?? {};
        const slot = slots.get(event.index) ?? slotOf(event.index, { type: kindOfDelta(delta) });
        applyDelta(answer, slot, delta);
      } else if (event.type === "content_block_stop") {
        const slot = slots.get(event.index);
        if (slot !== undefined) finish(slot);
      } else if (event.type === "message_delta") {
        const reason = asRecord(event.delta)?.stop_reason;
        if (typeof reason === "string") stopReason = reason;
        mergeUsage(event.usage);
      } else if (event.type === "message_stop") {
        for (const slot of slots.values()) finish(slot);
        isStopped = true;
      }
    },
    get isStopped() {
      return isStopped;
    },
    get stopReason() {
      return stopReason;
    },
    get usage() {
      return countsOf(totals);
    },
    get hasCalls() {
      return [...slots.values()].some((slot) => slot.block?.kind === "function_call");
    },
    raw: () => [...slots.values()].map(rawOf),
  };
}

function openBlock(answer: Answer, start: JsonRecord): AnswerBlock | null {
  const type = start.type;
  if (type === "tool_use") {
    return answer.open("function_call", { callId: asText(start.id), name: asText(start.name) });
  }
  if (type === "redacted_thinking") {
    const block = answer.open("thinking", { redacted: asText(start.data) });
    answer.close(block);
    return block;
  }
  if (type !== "text" && type !== "thinking") return null;
  const block = answer.open(type);
  answer.append(block, asText(type === "text" ? start.text : start.thinking));
  const signature = asText(start.signature);
  if (signature !== "") block.signature = signature;
  return block;
}

function kindOfDelta(delta: JsonRecord): string {
  if (delta.type === "text_delta") return "text";
  return delta.type === "thinking_delta" || delta.type === "signature_delta" ? "thinking" : "unknown";
}

function applyDelta(answer: Answer, slot: Slot, delta: JsonRecord): void {
  const { block } = slot;
  if (delta.type === "input_json_delta") {
    slot.json += asText(delta.partial_json);
    if (block?.kind === "function_call") answer.append(block, asText(delta.partial_json));
  } else if (delta.type === "text_delta" && block?.kind === "text") answer.append(block, asText(delta.text));
  else if (delta.type === "thinking_delta" && block?.kind === "thinking") answer.append(block, asText(delta.thinking));
  else if (delta.type === "signature_delta" && block?.kind === "thinking") {
    const signature = asText(delta.signature);
    if (signature !== "") block.signature = signature;
  }
}

function rawOf(slot: Slot): JsonRecord {
  const { block, raw, json } = slot;
  if (raw.type === "text") return { ...raw, text: block?.text ?? "" };
  if (raw.type === "thinking") return { ...raw, thinking: block?.text ?? "", signature: block?.signature ?? "" };
  return json === "" ? raw : { ...raw, input: parseInput(json) };
}

function parseInput(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // The API wants an object; the server's tool that this was for has its own record of it.
    return {};
  }
}

function isEmpty(input: unknown): boolean {
  const record = asRecord(input);
  return record === null || Object.keys(record).length === 0;
}

/** The last totals, never sums; input tokens come without the cached ones already. */
function countsOf(totals: JsonRecord): TokenCounts | null {
  if (Object.keys(totals).length === 0) return null;
  return {
    input: asCount(totals.input_tokens) ?? 0,
    output: asCount(totals.output_tokens) ?? 0,
    cache_read: asCount(totals.cache_read_input_tokens) ?? 0,
    cache_write: asCount(totals.cache_creation_input_tokens) ?? 0,
    cache_write_1h: asCount(asRecord(totals.cache_creation)?.ephemeral_1h_input_tokens) ?? 0,
  };
}

/** A message that came whole, as the events it would have been. */
export function eventsOf(message: JsonRecord): JsonRecord[] {
  const blocks = asArray(message.content).flatMap((content_block, index): JsonRecord[] => [
    { type: "content_block_start", index, content_block },
    { type: "content_block_stop", index },
  ]);
  return [
    { type: "message_start", message },
    ...blocks,
    { type: "message_delta", delta: { stop_reason: message.stop_reason }, usage: message.usage },
    { type: "message_stop" },
  ];
}
