// How answers of the Messages API end: the rules of the fake upstream, on replies other than its own.
import { describe, expect, it } from "vitest";
import {
  call,
  close,
  delta,
  end,
  error,
  jsonDelta,
  open,
  start,
  text,
  textDelta,
} from "../../../test/upstream/messages-events.ts";
import { anOwnCall, streamed } from "./an-own-call.ts";

const calls = (message: { content: readonly { type: string }[] }) =>
  message.content.filter(({ type }) => type === "function_call");

describe("a stream without its terminal signal is a transient error with nothing to run", () => {
  it.each([
    ["an empty body", { events: [] }],
    ["an end after message_start", streamed(start())],
    ["an end in mid-text", streamed(start(), open(0, { type: "text", text: "" }), textDelta(0, "Half"))],
    ["an end after a whole call", streamed(start(), call(0, "toolu_1", '{"city":"Oslo"}'))],
    [
      "an end in the middle of a call",
      streamed(start(), open(0, { type: "tool_use", id: "t", name: "get_time", input: {} }), jsonDelta(0, '{"a')),
    ],
    ["an end between message_delta and message_stop", streamed(start(), text(0, "All"), end("end_turn").slice(0, 1))],
    ["a reset in mid-text", { ...streamed(start(), text(0, "Half")), end: "reset" as const }],
    ["a closed socket in mid-text", { ...streamed(start(), text(0, "Half")), end: "cut" as const }],
    ["a reset before the headers", { ...streamed(), resetBeforeHeaders: true }],
    ["silence in mid-text", { ...streamed(start(), text(0, "Half")), end: "stall" as const }],
    ["silence before the headers", { ...streamed(start(), text(0, "Late"), end("end_turn")), headDelayMs: 3_000 }],
    [
      "an event that is cut in its middle",
      {
        raw: 'event: message_start\ndata: {"type":"message_start","message":{"usa',
        headers: { "content-type": "text/event-stream" },
      },
    ],
    [
      "a page of a proxy instead of a stream",
      { raw: "<html><body>Hello</body></html>", headers: { "content-type": "text/html" } },
    ],
  ])("%s", async (_, reply) => {
    const { message } = await anOwnCall(reply);
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient" });
    expect(calls(message)).toEqual([]);
    expect(message.error_message).toMatch(/^anthropic/);
  });

  it("keeps the text and the usage that had come", async () => {
    const { message } = await anOwnCall({ ...streamed(start(), text(0, "Half")), end: "cut" });
    expect(message.content).toEqual([{ type: "text", text: "Half" }]);
    expect(message.usage).toMatchObject({ input: 25, output: 1, cost_microusd: 90 });
  });

  it("but an answer is complete at message_stop, whatever the connection does then", async () => {
    const whole = streamed(start(), text(0, "All"), end("end_turn"));
    for (const ending of ["stall", "reset", "cut"] as const) {
      const { message } = await anOwnCall({ ...whole, end: ending });
      expect(message).toMatchObject({ stop_reason: "end", content: [{ text: "All" }] });
    }
  });

  it("does not take pings for silence", async () => {
    const pings = Array.from({ length: 8 }, () => ({ type: "ping" }));
    const reply = {
      ...streamed(start(), pings, text(0, "Awake"), end("end_turn")),
      chunk: { mode: "event", delayMs: 100 },
    };
    expect((await anOwnCall(reply)).message).toMatchObject({ stop_reason: "end", content: [{ text: "Awake" }] });
  });
});

describe("an error event is the same error as over HTTP", () => {
  it.each([
    ["overloaded_error", "Overloaded", 529, "transient"],
    ["api_error", "Internal server error", 500, "transient"],
    ["timeout_error", "Request timed out", 504, "transient"],
    ["rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit", 429, "rate_limited"],
    ["invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", 400, "context_overflow"],
    [
      "invalid_request_error",
      "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
      400,
      "context_overflow",
    ],
    ["request_too_large", "Request exceeds the maximum size", 413, "context_overflow"],
    ["invalid_request_error", "messages.0.content: Input should be a valid list", 400, "permanent"],
    [
      "invalid_request_error",
      "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for this model",
      400,
      "permanent",
    ],
    [
      "invalid_request_error",
      "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade or purchase credits.",
      400,
      "permanent",
    ],
    ["not_found_error", "model: claude-nine", 404, "permanent"],
    ["authentication_error", "invalid x-api-key", 401, "auth_expired"],
    ["permission_error", "Your API key does not have permission to use the specified resource", 403, "auth_expired"],
    ["billing_error", "Your account has a billing issue", 402, "permanent"],
  ])("%s: %s", async (type, words, status, kind) => {
    const inStream = await anOwnCall(streamed(start(), text(0, "So far"), error(type, words)));
    const overHttp = await anOwnCall({ status, json: error(type, words) });
    for (const { message } of [inStream, overHttp]) {
      expect(message).toMatchObject({ stop_reason: "error", error_kind: kind });
      expect(message.error_message).toContain(words);
    }
    expect(overHttp.message.error_message).toContain(String(status));
  });
});

describe("what the answer says about its end", () => {
  it("a refusal is a permanent error, also with a whole call before it", async () => {
    const { message } = await anOwnCall(streamed(start(), text(0, "I"), call(1, "toolu_1", "{}"), end("refusal")));
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "permanent", content: [{ text: "I" }] });
  });

  it.each(["max_tokens", "model_context_window_exceeded"])(
    "%s is length, and its cut call cannot be run",
    async (reason) => {
      const { message } = await anOwnCall(
        streamed(start(), text(0, "Now"), call(1, "toolu_1", '{"city":"Os'), end(reason)),
      );
      expect(message).toMatchObject({ stop_reason: "length", error_kind: null, content: [{ text: "Now" }] });
      expect(calls(message)).toEqual([]);
    },
  );

  it.each(["", "12", '{"a":1', '"Os'])("a call cut at %j by the limit is dropped", async (json) => {
    const { message } = await anOwnCall(streamed(start(), call(0, "toolu_1", json), end("max_tokens")));
    expect(message).toMatchObject({ stop_reason: "length", content: [] });
  });

  it("a whole call before the cut one is run", async () => {
    const reply = streamed(
      start(),
      call(0, "toolu_1", '{"city":"Oslo"}'),
      call(1, "toolu_2", '{"ci'),
      end("max_tokens"),
    );
    const { message } = await anOwnCall(reply);
    expect(message).toMatchObject({
      stop_reason: "function_call",
      content: [{ id: "toolu_1", arguments: { city: "Oslo" } }],
    });
  });

  it.each(["end_turn", "stop_sequence", "a_new_reason", null])(
    "a whole call is a call although the reason is %s",
    async (reason) => {
      const { message } = await anOwnCall(streamed(start(), call(0, "toolu_1", "{}"), end(reason)));
      expect(message.stop_reason).toBe("function_call");
    },
  );

  it.each(["tool_use", "stop_sequence", "end_turn", "a_new_reason"])("%s without a call is an end", async (reason) => {
    const { message } = await anOwnCall(streamed(start(), text(0, "Done."), end(reason)));
    expect(message).toMatchObject({ stop_reason: "end", content: [{ text: "Done." }] });
  });

  it("an answer without content is an end", async () => {
    expect((await anOwnCall(streamed(start(), end("end_turn")))).message).toMatchObject({
      stop_reason: "end",
      content: [],
    });
  });
});

describe("a paused turn", () => {
  const search = [
    ...text(0, "Searching… "),
    open(1, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
    jsonDelta(1, '{"query":"x"}'),
    close(1),
  ];

  it("is continued with the answer as it came, and both requests are paid for", async () => {
    const { message, requests, frames } = await anOwnCall([
      streamed(start(), search, end("pause_turn")),
      streamed(start({ input_tokens: 40, output_tokens: 1 }), text(0, "Found."), end("end_turn", { output_tokens: 5 })),
    ]);
    expect(message.content).toEqual([
      { type: "text", text: "Searching… " },
      { type: "text", text: "Found." },
    ]);
    expect(message).toMatchObject({ stop_reason: "end", usage: { input: 65, output: 14 } });
    expect(requests.map(({ violations }) => violations)).toEqual([[], []]);
    const messages = (requests[1]?.body.messages ?? []) as unknown[];
    expect(messages.at(-1)).toEqual({
      role: "assistant",
      content: [
        { type: "text", text: "Searching… " },
        { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
      ],
    });
    expect(frames.map(({ block, text: piece }) => [block, piece])).toEqual([
      [0, "Searching… "],
      [1, "Found."],
    ]);
  });

  it("is continued when its text ends in white space, which the API refuses at the end", async () => {
    const { message, requests } = await anOwnCall([
      streamed(start(), text(0, "Wait. "), end("pause_turn")),
      streamed(start(), text(0, "Go."), end("end_turn")),
    ]);
    expect(requests.flatMap(({ violations }) => violations)).toEqual([]);
    expect(message.stop_reason).toBe("end");
  });

  it("that never goes on is an error, never a silent end", async () => {
    const { message, requests } = await anOwnCall(streamed(start(), text(0, "Wait."), end("pause_turn")));
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "permanent" });
    expect(requests.length).toBe(6);
  });

  it("with a whole call runs the call", async () => {
    const { message, requests } = await anOwnCall(streamed(start(), call(0, "toolu_1", "{}"), end("pause_turn")));
    expect(message.stop_reason).toBe("function_call");
    expect(requests).toHaveLength(1);
  });
});

describe("HTTP errors", () => {
  it.each([
    [500, "transient"],
    [502, "transient"],
    [503, "transient"],
    [529, "transient"],
    [408, "transient"],
    [409, "transient"],
    [400, "permanent"],
    [405, "permanent"],
    [422, "permanent"],
    [401, "auth_expired"],
    [403, "auth_expired"],
    [404, "permanent"],
    [413, "context_overflow"],
    [429, "rate_limited"],
  ])("status %i with a page instead of JSON is %s", async (status, kind) => {
    const { message } = await anOwnCall({ status, raw: "<html><head><title>Oops</title></head></html>" });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: kind });
    expect(message.error_message).toContain("Oops");
  });

  it("a redirect is not followed: it would lose the body and could show the key to another host", async () => {
    const { message } = await anOwnCall({ status: 307, headers: { location: "http://127.0.0.1:9/" }, json: {} });
    expect(message).toMatchObject({ error_kind: "permanent" });
    expect(message.error_message).toContain("base URL");
  });

  it("takes the time to wait from 503 too", async () => {
    const { message } = await anOwnCall({
      status: 503,
      headers: { "retry-after": "3" },
      json: error("api_error", "Busy"),
    });
    expect(message).toMatchObject({ error_kind: "transient", retry_after_ms: 3_000 });
  });
});

describe("what the reader is told never holds the key (I13)", () => {
  it.each([
    ["over HTTP", { status: 401, json: error("authentication_error", "bad key test-key-0123456789 given") }],
    ["in a stream", streamed(start(), error("authentication_error", "bad key test-key-0123456789 given"))],
  ])("%s", async (_, reply) => {
    const { message, logs } = await anOwnCall(reply);
    expect(message.error_message).toContain("bad key [redacted] given");
    expect(JSON.stringify([message, logs])).not.toContain("test-key-0123456789");
  });
});

describe("thinking and order", () => {
  it("keeps redacted thinking, and thinking that shows nothing but its signature", async () => {
    const { message } = await anOwnCall(
      streamed(
        start(),
        [open(0, { type: "redacted_thinking", data: "b3BhcXVl" }), close(0)],
        [
          open(1, { type: "thinking", thinking: "", signature: "" }),
          delta(1, { type: "signature_delta", signature: "EqSealed0001==" }),
          close(1),
        ],
        text(2, "So."),
        end("end_turn"),
      ),
    );
    expect(message.content).toEqual([
      { type: "thinking", text: "", redacted: "b3BhcXVl" },
      { type: "thinking", text: "", signature: "EqSealed0001==" },
      { type: "text", text: "So." },
    ]);
  });

  it("takes deltas by index when blocks grow side by side, and streams them in order", async () => {
    const { message, frames } = await anOwnCall(
      streamed(
        start(),
        open(0, { type: "text", text: "" }),
        open(1, { type: "tool_use", id: "a", name: "{{tool:0}}", input: {} }),
        open(2, { type: "tool_use", id: "b", name: "{{tool:1}}", input: {} }),
        jsonDelta(2, '{"n":'),
        jsonDelta(1, '{"city":"Os'),
        textDelta(0, "Both"),
        jsonDelta(2, "2}"),
        close(2),
        jsonDelta(1, 'lo"}'),
        close(1),
        textDelta(0, "."),
        close(0),
        end("tool_use"),
      ),
    );
    expect(message.content).toMatchObject([
      { type: "text", text: "Both." },
      { id: "a", function_id: "get_weather", arguments: { city: "Oslo" } },
      { id: "b", function_id: "get_time", arguments: { n: 2 } },
    ]);
    expect(frames.map(({ block }) => block)).toEqual([0, 0, 1, 2]);
  });

  it("drops a text block that stays empty, and counts frames as if it had not been", async () => {
    const { message, frames } = await anOwnCall(streamed(start(), text(0), text(1, "Here"), end("end_turn")));
    expect(message.content).toEqual([{ type: "text", text: "Here" }]);
    expect(frames.map(({ block }) => block)).toEqual([0]);
  });

  it("passes on a name that the model invented, and takes kinds of blocks and events that are new", async () => {
    const { message } = await anOwnCall(
      streamed(
        start(),
        { type: "something_new", index: 0 },
        [open(0, { type: "container_upload", file_id: "f" }), close(0)],
        [open(1, { type: "tool_use", id: "a", name: "made__up", input: {} }), close(1)],
        end("tool_use"),
      ),
    );
    expect(message.content).toMatchObject([{ type: "function_call", function_id: "made__up", arguments: {} }]);
  });
});

describe("arguments", () => {
  it.each([
    ["", {}],
    ["  ", {}],
    ['{"a":[1,{"b":null}]}', { a: [1, { b: null }] }],
    ["[1]", [1]],
    ["null", null],
    ['{"a":', '{"a":'],
    ["not json", "not json"],
  ])("%j become %j, and the call is kept", async (json, value) => {
    const { message } = await anOwnCall(streamed(start(), call(0, "toolu_1", ...json), end("tool_use")));
    expect(message).toMatchObject({ stop_reason: "function_call" });
    expect(message.content).toEqual([
      {
        type: "function_call",
        id: "toolu_1",
        provider_call_id: "toolu_1",
        function_id: "get_weather",
        arguments: value,
      },
    ]);
  });

  it("takes the input that a server sends whole, with the start", async () => {
    const whole = open(0, { type: "tool_use", id: "t", name: "{{tool:0}}", input: { city: "Oslo" } });
    for (const events of [[whole, close(0)], [whole]]) {
      const { message } = await anOwnCall(streamed(start(), events, end("tool_use")));
      expect(message.content).toMatchObject([{ arguments: { city: "Oslo" } }]);
    }
  });
});

describe("usage", () => {
  it("takes the last totals, and leaves a field that is not repeated", async () => {
    const first = { input_tokens: 10, cache_read_input_tokens: 7, cache_creation_input_tokens: 3, output_tokens: 1 };
    const reply = streamed(
      start(first),
      text(0, "Hi"),
      { type: "message_delta", delta: {}, usage: { output_tokens: 20 } },
      end("end_turn", { input_tokens: 12, output_tokens: 40, cache_read_input_tokens: null as unknown as number }),
    );
    const { message } = await anOwnCall(reply);
    expect(message.usage).toEqual({
      input: 12,
      output: 40,
      cache_read: 7,
      cache_write: 3,
      cost_microusd: Math.round(12 * 3 + 40 * 15 + 7 * 0.3 + 3 * 3.75),
      cost_usd: Math.round(12 * 3 + 40 * 15 + 7 * 0.3 + 3 * 3.75) / 1e6,
    });
  });

  it("leaves the cost to the caller when the catalog does not know the model", async () => {
    const { message } = await anOwnCall(streamed(start(), text(0, "Hi"), end("end_turn")), { catalog: [] });
    expect(message.usage).toEqual({ input: 25, output: 9, cache_read: 0, cache_write: 0 });
  });
});

describe("a server that does not stream", () => {
  it("is understood: a whole message is an answer", async () => {
    const json = {
      type: "message",
      content: [
        { type: "text", text: "Whole." },
        { type: "tool_use", id: "t", name: "get_time", input: { a: 1 } },
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 5, output_tokens: 6 },
    };
    const { message } = await anOwnCall({ json });
    expect(message).toMatchObject({
      stop_reason: "function_call",
      content: [{ text: "Whole." }, { arguments: { a: 1 } }],
      usage: { input: 5, output: 6 },
    });
  });

  it("an error with status 200 is an error", async () => {
    const { message } = await anOwnCall({ json: error("overloaded_error", "Overloaded") });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient" });
  });
});
