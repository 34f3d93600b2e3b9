// One call of the Messages API, paused turns included: request out, events in, the end judged.
import type { Credential } from "@flotilla/contracts";
import {
  addCounts,
  type Ending,
  type EventStream,
  failureOf,
  type JsonRecord,
  type ProviderCall,
  ProviderFailure,
  parseRecord,
  permanent,
  readVendorError,
  type StreamCall,
  secretOf,
  type TokenCounts,
  transient,
  vendorErrorOf,
  withEventStream,
} from "@flotilla/provider-kit";
import { createMessageReader, eventsOf, type MessageReader } from "../domain/message-reader.ts";
import { messagesRequest } from "../domain/messages-request.ts";
import type { MessagesRequest, WireBlock } from "../domain/wire.ts";
import { withoutTrailingSpace } from "../domain/wire-messages.ts";

export interface MessagesApi {
  readonly url: string;
  readonly stallTimeoutMs: number;
  readonly usesCache: boolean;
  /** @default global fetch */
  readonly fetch?: typeof fetch;
}

const provider = "anthropic";
/** How often a paused turn is taken up again before it counts as an error. */
const maxContinuations = 5;
const cut = new Set(["max_tokens", "model_context_window_exceeded"]);

export function streamMessages(api: MessagesApi): StreamCall {
  return async (call) => {
    const first = messagesRequest(call, api);
    let said: JsonRecord[] = [];
    let spent: TokenCounts | null = null;
    for (let round = 0; round <= maxContinuations; round++) {
      const reader = await oneStream(api, call, continued(first, said), spent);
      if (reader.stopReason !== "pause_turn" || reader.hasCalls) return endingOf(reader);
      said = [...said, ...reader.raw()];
      // Each request is paid for; within one, the last totals count.
      if (reader.usage !== null) spent = spent === null ? reader.usage : addCounts(spent, reader.usage);
    }
    throw permanent(`${provider} paused the turn ${maxContinuations + 1} times without an end`);
  };
}

/** The paused answer goes back as it came; the API goes on from there. */
function continued(request: MessagesRequest, said: readonly JsonRecord[]): MessagesRequest {
  const isWorthSending = (block: JsonRecord): boolean => block.type !== "text" || String(block.text).trim() !== "";
  const content = said.filter(isWorthSending) as unknown as WireBlock[];
  if (content.length === 0) return request;
  return { ...request, messages: withoutTrailingSpace([...request.messages, { role: "assistant", content }]) };
}

async function oneStream(
  api: MessagesApi,
  call: ProviderCall,
  body: MessagesRequest,
  spent: TokenCounts | null,
): Promise<MessageReader> {
  const reader = createMessageReader(call.answer);
  const take = (event: JsonRecord): void => {
    reader.take(event);
    if (reader.usage !== null) call.reportUsage(spent === null ? reader.usage : addCounts(spent, reader.usage));
  };
  await withEventStream(
    {
      provider,
      url: api.url,
      headers: headersOf(call.credential, body),
      body,
      signal: call.signal,
      stallTimeoutMs: api.stallTimeoutMs,
      now: call.now,
      ...(api.fetch === undefined ? {} : { fetch: api.fetch }),
    },
    (events) => readEvents(events, take, () => reader.isStopped, call.now),
  );
  if (!reader.isStopped) throw transient(`${provider} ended the stream before the answer was complete`);
  return reader;
}

async function readEvents(
  events: EventStream,
  take: (event: JsonRecord) => void,
  isStopped: () => boolean,
  now: () => number,
): Promise<void> {
  const fail = (error: ReturnType<typeof vendorErrorOf>): never => {
    throw new ProviderFailure(failureOf(error, { provider, now: now() }));
  };
  if (events.isJson) {
    const message = parseRecord(await events.text()) ?? {};
    if (message.type === "error") fail(vendorErrorOf(message));
    if (message.type === "message") for (const event of eventsOf(message)) take(event);
    return;
  }
  for await (const { name, data } of events) {
    if (data.trim() === "") continue;
    const event = parseRecord(data);
    if (name === "error" || event?.type === "error")
      fail(event === null ? readVendorError(data) : vendorErrorOf(event));
    // Text would be missing if it were skipped.
    if (event === null) throw transient(`${provider} sent an event that cannot be read`);
    take(typeof event.type === "string" ? event : { ...event, type: name });
    if (isStopped()) return;
  }
}

function headersOf(credential: Credential, body: MessagesRequest): Record<string, string> {
  const secret = secretOf(credential);
  const isKey = credential.type === "api_key";
  const betas = [
    ...(isKey ? [] : ["oauth-2025-04-20"]),
    ...(body.thinking === undefined || body.tools === undefined ? [] : ["interleaved-thinking-2025-05-14"]),
  ];
  return {
    "anthropic-version": "2023-06-01",
    ...(isKey ? { "x-api-key": secret } : { authorization: `Bearer ${secret}` }),
    ...(betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") }),
  };
}

function endingOf(reader: MessageReader): Ending {
  const reason = reader.stopReason;
  if (reason === "refusal") throw permanent("the model declined to answer (refusal)");
  return reason !== null && cut.has(reason) ? "length" : "end";
}
