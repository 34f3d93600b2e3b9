// A transcript made fit for a provider: every call has exactly one result, right behind it and in order (I5), and
// nothing is left that no vendor would take.
import type { AgentMessage, AssistantMessage, ContentBlock, FunctionResultMessage } from "@flotilla/contracts";
import { type WireImage, wireImage } from "./images.ts";
import { resultText } from "./result-text.ts";
import { createWireIds, type WireIds } from "./wire-ids.ts";

export type PreparedPart = { readonly type: "text"; readonly text: string } | WireImage;

export interface PreparedUser {
  readonly role: "user";
  readonly content: readonly PreparedPart[];
}
export interface PreparedCall {
  readonly type: "function_call";
  readonly wireId: string;
  readonly functionId: string;
  readonly arguments: unknown;
}
export type PreparedBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string; readonly signature?: string; readonly redacted?: string }
  | PreparedCall;
export interface PreparedResult {
  readonly wireId: string;
  readonly functionId: string;
  /** Never empty. */
  readonly text: string;
  readonly images: readonly PreparedPart[];
  readonly isError: boolean;
}
export interface PreparedAssistant {
  readonly role: "assistant";
  readonly content: readonly PreparedBlock[];
  /** One for each call of `content`, in its order. */
  readonly results: readonly PreparedResult[];
}
export type PreparedMessage = PreparedUser | PreparedAssistant;

export interface TranscriptOptions {
  /** The provider that will read it. */
  readonly provider: string;
  readonly supportsImages: boolean;
  /** Longest call id of the vendor. */
  readonly maxIdLength: number;
  /** Whether the vendor takes this message's thinking back. @default only from the same provider */
  readonly keepsThinking?: (message: AssistantMessage, block: Extract<ContentBlock, { type: "thinking" }>) => boolean;
}

const noResult = "No result was recorded for this call; it may or may not have run.";

export function prepareTranscript(messages: readonly AgentMessage[], options: TranscriptOptions): PreparedMessage[] {
  const context: Context = {
    options,
    ids: createWireIds({ maxLength: options.maxIdLength }),
    results: indexResults(messages),
  };
  const prepared: PreparedMessage[] = [];
  messages.forEach((message, at) => {
    if (message.role === "user") {
      const content = userParts(message.content, options);
      if (content.length > 0) prepared.push({ role: "user", content });
    } else if (message.role === "assistant") {
      const assistant = prepareAssistant(message, at, context);
      if (assistant.content.length > 0) prepared.push(assistant);
    }
  });
  // A model needs something to answer, also when the newest message has nothing to read.
  const newest = messages.findLast((message) => message.role !== "custom");
  const isBlank = newest?.role === "user" && userParts(newest.content, options).length === 0;
  if (isBlank || prepared.length === 0) prepared.push({ role: "user", content: [emptyPart] });
  return prepared;
}

const emptyPart: PreparedPart = { type: "text", text: "(empty message)" };

interface Context {
  readonly options: TranscriptOptions;
  readonly ids: WireIds;
  readonly results: (callId: string, at: number) => FunctionResultMessage | null;
}

/** The newest result of a call before another message calls under the same id. */
function indexResults(messages: readonly AgentMessage[]): Context["results"] {
  const results = new Map<string, { at: number; message: FunctionResultMessage }[]>();
  const calls = new Map<string, number[]>();
  messages.forEach((message, at) => {
    if (message.role === "function_result") {
      results.set(message.function_call_id, [...(results.get(message.function_call_id) ?? []), { at, message }]);
    } else if (message.role === "assistant") {
      for (const block of message.content) {
        if (block.type === "function_call") calls.set(block.id, [...(calls.get(block.id) ?? []), at]);
      }
    }
  });
  return (callId, at) => {
    const until = calls.get(callId)?.find((other) => other > at) ?? messages.length;
    const own = results.get(callId)?.findLast((result) => result.at > at && result.at < until);
    return own?.message ?? null;
  };
}

function userParts(content: readonly ContentBlock[], options: TranscriptOptions): PreparedPart[] {
  return content.flatMap((block): PreparedPart[] => {
    if (block.type === "image") return [wireImage(block, { isSupported: options.supportsImages })];
    return block.type === "text" && block.text.trim() !== "" ? [{ type: "text", text: block.text.toWellFormed() }] : [];
  });
}

function prepareAssistant(message: AssistantMessage, at: number, context: Context): PreparedAssistant {
  const { options, ids } = context;
  const isOwn = message.provider === options.provider;
  const keepsThinking = options.keepsThinking ?? (() => isOwn);
  const content: PreparedBlock[] = [];
  const results: PreparedResult[] = [];
  for (const block of message.content) {
    if (block.type === "text" && block.text.trim() !== "") {
      content.push({ type: "text", text: block.text.toWellFormed() });
    } else if (block.type === "thinking" && keepsThinking(message, block)) {
      const { text, signature, redacted } = block;
      content.push({
        type: "thinking",
        text,
        ...(signature === undefined ? {} : { signature }),
        ...(redacted === undefined ? {} : { redacted }),
      });
    } else if (block.type === "function_call") {
      const wireId = isOwn ? ids.take(block.provider_call_id, block.id) : ids.take(block.id);
      content.push({ type: "function_call", wireId, functionId: block.function_id, arguments: block.arguments });
      results.push(prepareResult(wireId, block.function_id, context.results(block.id, at), options));
    }
  }
  return { role: "assistant", content: withoutLastThinking(content), results };
}

/** Thinking without an answer behind it is the rest of a message that was cut; no vendor takes it at the end. */
function withoutLastThinking(content: readonly PreparedBlock[]): readonly PreparedBlock[] {
  return content.slice(0, content.findLastIndex((block) => block.type !== "thinking") + 1);
}

function prepareResult(
  wireId: string,
  functionId: string,
  result: FunctionResultMessage | null,
  options: TranscriptOptions,
): PreparedResult {
  if (result === null) return { wireId, functionId, text: noResult, images: [], isError: true };
  const images = result.content.flatMap((block) =>
    block.type === "image" ? [wireImage(block, { isSupported: options.supportsImages })] : [],
  );
  const text = resultText(result).toWellFormed();
  const isEmpty = text.trim() === "";
  const shown = isEmpty ? (images.length > 0 ? "(see the images)" : "(no output)") : text;
  return { wireId, functionId, text: shown, images, isError: result.is_error };
}
