// One call of a Chat Completions API: request out, chunks in, the end judged.
import { failureOf } from "../classify.ts";
import { secretOf } from "../credential.ts";
import { ProviderFailure, permanent, transient } from "../failure.ts";
import { type EventStream, withEventStream } from "../http-stream.ts";
import { asRecord, type JsonRecord, parseRecord } from "../json.ts";
import type { Ending, ProviderCall, StreamCall } from "../provider-call.ts";
import type { SseEvent } from "../sse-parser.ts";
import { readVendorError, vendorErrorOf } from "../vendor-error.ts";
import { chatRequest } from "./chat-request.ts";
import { type ChunkReader, createChunkReader } from "./chunk-reader.ts";
import type { ChatDialect } from "./dialect.ts";

export function streamChat(dialect: ChatDialect): StreamCall {
  return async (call) =>
    await withEventStream(
      {
        provider: dialect.provider,
        url: dialect.url,
        headers: { authorization: `Bearer ${secretOf(call.credential)}` },
        body: chatRequest(call, dialect),
        signal: call.signal,
        stallTimeoutMs: dialect.stallTimeoutMs ?? 120_000,
        now: call.now,
        ...(dialect.fetch === undefined ? {} : { fetch: dialect.fetch }),
      },
      async (events) => {
        const reader = createChunkReader(call.answer);
        if (events.isJson) takeChunk(reader, parseRecord(await events.text()) ?? {}, "", call, dialect);
        else await readEvents(events, reader, call, dialect);
        return endingOf(reader, dialect.provider);
      },
    );
}

async function readEvents(events: EventStream, reader: ChunkReader, call: ProviderCall, dialect: ChatDialect) {
  for await (const event of events) {
    if (event.data.trim() === "[DONE]") return;
    if (event.data.trim() === "") continue;
    const chunk = chunkOf(event, call, dialect);
    if (chunk === null) {
      // Text would be missing if it were skipped; behind the end there is none.
      if (reader.finishReason === null) throw transient(`${dialect.provider} sent an event that cannot be read`);
      return;
    }
    takeChunk(reader, chunk, event.name, call, dialect);
    // The answer is complete; what may follow is its usage and `[DONE]`, and not every server sends them.
    if (reader.finishReason !== null) events.relax(dialect.trailerMs ?? 5_000);
  }
}

/** Null for what is no JSON: an event that was cut, or no event at all. */
function chunkOf(event: SseEvent, call: ProviderCall, dialect: ChatDialect): JsonRecord | null {
  if (event.name !== "error") return parseRecord(event.data);
  const error = readVendorError(event.data);
  throw new ProviderFailure(failureOf(error, { provider: dialect.provider, now: call.now() }));
}

function takeChunk(
  reader: ChunkReader,
  chunk: JsonRecord,
  name: string,
  call: ProviderCall,
  dialect: ChatDialect,
): void {
  const choice = Array.isArray(chunk.choices) ? asRecord(chunk.choices[0]) : null;
  const isError = Boolean(chunk.error) || chunk.object === "error" || chunk.type === "error" || name === "error";
  if (isError || choice?.error) {
    const error = vendorErrorOf(isError ? chunk : choice);
    throw new ProviderFailure(failureOf(error, { provider: dialect.provider, now: call.now() }));
  }
  reader.take(chunk);
  if (reader.usage !== null) call.reportUsage(reader.usage);
}

const cut = new Set(["length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"]);
const declined = new Set(["content_filter", "content-filter", "safety", "sensitive", "refusal", "recitation"]);
const broken = new Set(["error", "network_error", "insufficient_system_resource", "abort", "cancelled"]);

function endingOf(reader: ChunkReader, provider: string): Ending {
  const reason = reader.finishReason;
  if (reason === null) throw transient(`${provider} ended the stream before the answer was complete`);
  if (reader.refusal.trim() !== "") throw permanent(`the model declined: ${reader.refusal.trim()}`);
  if (declined.has(reason)) throw permanent(`the answer was stopped by the vendor (${reason})`);
  if (broken.has(reason)) throw transient(`${provider} broke the answer off (${reason})`);
  return cut.has(reason) ? "length" : "end";
}
