// The end of a Chat Completions stream in time: an answer that is complete does not wait for its trailer for ever.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "@flotilla/telemetry";
import { afterEach, describe, expect, it } from "vitest";
import { createAnswer } from "../answer.ts";
import { ProviderFailure } from "../failure.ts";
import { createFrameEmitter } from "../frame-emitter.ts";
import type { ProviderCall } from "../provider-call.ts";
import { createToolNames } from "../tool-names.ts";
import { streamChat } from "./stream-chat.ts";

let server: Server | null = null;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Sends the text and then nothing more. */
async function silentAfter(text: string): Promise<string> {
  const silent = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text);
  });
  server = silent;
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1/chat/completions`;
}

function aCall(): ProviderCall {
  const logger = {} as Logger;
  const bus = { nc: { publish: () => {} }, deltas: { append: async () => {} } };
  const frames = createFrameEmitter({ bus, logger, sessionId: undefined, messageId: undefined, turnId: undefined });
  const names = createToolNames([]);
  return {
    request: { model: "m", messages: [], tools: [] },
    credential: { type: "api_key", key: "k" },
    model: null,
    maxTokens: 10,
    names,
    answer: createAnswer({ frames, names, newCallId: () => "call_1" }),
    signal: new AbortController().signal,
    logger,
    now: Date.now,
    reportUsage: () => {},
  };
}

const dialect = { provider: "acme", maxTokensField: "max_tokens" as const };

describe("streamChat", () => {
  it("waits for usage and [DONE] only so long once the finish reason came", async () => {
    const url = await silentAfter('data: {"choices":[{"delta":{"content":"All"},"finish_reason":"stop"}]}\n\n');
    const call = aCall();
    expect(await streamChat({ ...dialect, url, stallTimeoutMs: 60_000, trailerMs: 50 })(call)).toBe("end");
    expect(call.answer.content("all")).toEqual([{ type: "text", text: "All" }]);
  });

  it("gives up on silence before", async () => {
    const url = await silentAfter('data: {"choices":[{"delta":{"content":"Half"}}]}\n\n');
    const failure = await streamChat({ ...dialect, url, stallTimeoutMs: 50, trailerMs: 60_000 })(aCall()).catch(
      (error) => error,
    );
    expect(failure).toBeInstanceOf(ProviderFailure);
    expect(failure.failure).toEqual({ kind: "transient", message: "acme sent nothing for 50 ms" });
  });
});
