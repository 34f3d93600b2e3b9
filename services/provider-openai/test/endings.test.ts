// How answers of Chat Completions end: the rules of the fake upstream, on replies other than its own.
import { describe, expect, it } from "vitest";
import { call, delta, failure, finish, fragment, text, usage } from "../../../test/upstream/chat-chunks.ts";
import { anOwnCall, cut, streamed } from "./an-own-call.ts";

const calls = (message: { content: readonly { type: string }[] }) =>
  message.content.filter(({ type }) => type === "function_call");

describe("a stream without its terminal signal is a transient error with nothing to run", () => {
  it.each([
    ["an empty body", cut()],
    ["an end in mid-text", cut(text("Half"))],
    ["[DONE] without a finish reason", streamed(text("Half"))],
    ["an end after a whole call", cut(call(0, "call_1", '{"city":"Oslo"}'))],
    ["an end in the middle of a call", cut(call(0, "call_1", '{"city":"Os'))],
    ["usage without a finish reason", cut(text("Half"), usage(1, 2))],
    ["a reset in mid-text", { ...cut(text("Half")), end: "reset" as const }],
    ["a closed socket in mid-text", { ...cut(text("Half")), end: "cut" as const }],
    ["a reset before the headers", { ...cut(), resetBeforeHeaders: true }],
    ["silence in mid-text", { ...cut(text("Half")), end: "stall" as const }],
    ["silence before the headers", { ...streamed(text("Late"), finish("stop")), headDelayMs: 3_000 }],
    [
      "an event that is cut in its middle",
      { raw: 'data: {"choices":[{"delta":{"content":"Ha', headers: { "content-type": "text/event-stream" } },
    ],
    [
      "an event that is no JSON",
      {
        raw: 'data: {"choices":[{"delta":{"content":"Ha"}}]}\n\ndata: oops\n\n',
        headers: { "content-type": "text/event-stream" },
      },
    ],
    ["a page of a proxy instead of a stream", { raw: "<html>Hello</html>", headers: { "content-type": "text/html" } }],
  ])("%s", async (_, reply) => {
    const { message } = await anOwnCall(reply);
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient" });
    expect(calls(message)).toEqual([]);
  });

  it.each([
    ["without [DONE]", cut(text("All"), finish("stop"))],
    ["without [DONE], the socket closed", { ...cut(text("All"), finish("stop")), end: "cut" as const }],
    ["without [DONE], reset", { ...cut(text("All"), finish("stop")), end: "reset" as const }],
    [
      "with a usage chunk that is cut",
      {
        raw: 'data: {"choices":[{"delta":{"content":"All"},"finish_reason":"stop"}]}\n\ndata: {"usa',
        headers: { "content-type": "text/event-stream" },
      },
    ],
  ])("but an answer whose finish reason came is complete %s", async (_, reply) => {
    const { message } = await anOwnCall(reply);
    expect(message).toMatchObject({ stop_reason: "end", content: [{ text: "All" }] });
  });

  it("does not take comments for silence", async () => {
    const comments = Array.from({ length: 8 }, () => ": waiting\n\n");
    const reply = {
      ...streamed(),
      events: [...comments, ...text("Awake"), finish("stop")],
      chunk: { mode: "event", delayMs: 100 },
    };
    expect((await anOwnCall(reply)).message).toMatchObject({ stop_reason: "end", content: [{ text: "Awake" }] });
  });
});

describe("an error chunk is the same error as over HTTP", () => {
  it.each([
    [{ message: "The server had an error", type: "server_error" }, 500, "transient"],
    [
      { message: "That model is currently overloaded with other requests.", type: "server_error", code: null },
      503,
      "transient",
    ],
    [
      {
        message:
          "Rate limit reached for gpt-fixture-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6s. You can add a payment method at https://platform.example/billing.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
      429,
      "rate_limited",
    ],
    [
      {
        message: "You exceeded your current quota, please check your plan and billing details.",
        type: "insufficient_quota",
        code: "insufficient_quota",
      },
      429,
      "permanent",
    ],
    [
      {
        message:
          "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
      400,
      "context_overflow",
    ],
    [
      {
        message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
        type: "invalid_request_error",
        code: null,
      },
      400,
      "context_overflow",
    ],
    [
      {
        message: "Incorrect API key provided: sk-abcde***wxyz.",
        type: "invalid_request_error",
        code: "invalid_api_key",
      },
      401,
      "auth_expired",
    ],
    [
      {
        message: "The model `gpt-nine` does not exist or you do not have access to it.",
        type: "invalid_request_error",
        code: "model_not_found",
      },
      404,
      "permanent",
    ],
    [
      {
        message: "Invalid value: 'x'. Supported values are: 'y'.",
        type: "invalid_request_error",
        param: "messages[0].role",
        code: "invalid_value",
      },
      400,
      "permanent",
    ],
    [
      {
        message:
          "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
        type: "invalid_request_error",
        code: "invalid_value",
      },
      400,
      "permanent",
    ],
    [
      {
        message:
          "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 50 instead.",
        type: "invalid_request_error",
        code: "string_above_max_length",
      },
      400,
      "permanent",
    ],
    [
      {
        message: "Country, region, or territory not supported",
        type: "request_forbidden",
        code: "unsupported_country_region_territory",
      },
      403,
      "permanent",
    ],
  ])("%j", async (error, status, kind) => {
    const inStream = await anOwnCall(cut(text("So far"), failure(error)));
    const overHttp = await anOwnCall({ status, json: { error } });
    expect(inStream.message).toMatchObject({ stop_reason: "error", error_kind: kind, content: [{ text: "So far" }] });
    expect(overHttp.message).toMatchObject({ stop_reason: "error", error_kind: kind });
    expect(overHttp.message.error_message).not.toContain("sk-abcde");
  });

  it.each([
    ["a code that is a status", failure({ message: "Provider returned error", code: 502 }), "transient"],
    ["a code that is 429", failure({ message: "Slow down", code: 429 }), "rate_limited"],
    ["a plain string", failure("Internal error"), "transient"],
    [
      "an error in its choice",
      { choices: [{ index: 0, delta: {}, error: { message: "Key invalid", code: 401 } }] },
      "auth_expired",
    ],
    [
      "an error event without an error object",
      { $bare: true, $event: "error", message: "the prompt is too long for the context window" },
      "context_overflow",
    ],
    ["an error event that is no JSON", "event: error\ndata: upstream connect error\n\n", "transient"],
  ])("%s", async (_, chunk, kind) => {
    const { message } = await anOwnCall({ events: [...text("So far"), chunk], done: false });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: kind });
  });

  it("reads the wait out of the words when no header names it", async () => {
    const error = {
      message: "Rate limit reached. Please try again in 1m2.5s.",
      type: "requests",
      code: "rate_limit_exceeded",
    };
    expect((await anOwnCall({ status: 429, json: { error } })).message.retry_after_ms).toBe(62_500);
  });

  it.each([400, 404, 500])("status %i with a page instead of JSON", async (status) => {
    const { message } = await anOwnCall({ status, raw: "<html>Oops</html>" });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: status === 500 ? "transient" : "permanent" });
  });
});

describe("what the answer says about its end", () => {
  it.each(["content_filter", "safety"])("%s is a permanent error, also with a whole call", async (reason) => {
    const { message } = await anOwnCall(streamed(text("I"), call(0, "call_1", "{}"), finish(reason)));
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "permanent", content: [{ text: "I" }] });
  });

  it("a refusal is a permanent error that quotes it", async () => {
    const refusal = ["I can't ", "help."].map((piece) => delta({ refusal: piece }));
    const { message } = await anOwnCall(streamed(delta({ content: null, refusal: null }), refusal, finish("stop")));
    expect(message).toMatchObject({
      stop_reason: "error",
      error_kind: "permanent",
      error_message: "the model declined: I can't help.",
    });
  });

  it("length keeps the text and drops the cut call", async () => {
    const { message } = await anOwnCall(streamed(text("Now"), call(0, "call_1", '{"city":"Os'), finish("length")));
    expect(message).toMatchObject({ stop_reason: "length", error_kind: null, content: [{ text: "Now" }] });
    expect(calls(message)).toEqual([]);
  });

  it.each(["", "4", '{"a":{}'])("a call cut at %j by the limit is dropped", async (json) => {
    const { message } = await anOwnCall(streamed(call(0, "call_1", json), finish("length")));
    expect(message).toMatchObject({ stop_reason: "length", content: [] });
  });

  it.each(["stop", "length", "function_call", "a_new_reason"])(
    "a whole call is a call although the reason is %s",
    async (reason) => {
      const { message } = await anOwnCall(streamed(call(0, "call_1", '{"city":', '"Oslo"}'), finish(reason)));
      expect(message).toMatchObject({ stop_reason: "function_call", content: [{ arguments: { city: "Oslo" } }] });
    },
  );

  it.each(["tool_calls", "function_call", "eos"])("%s without a call is an end", async (reason) => {
    const { message } = await anOwnCall(streamed(text("Done."), finish(reason)));
    expect(message).toMatchObject({ stop_reason: "end", content: [{ text: "Done." }] });
  });

  it("a server that breaks off says so", async () => {
    const { message } = await anOwnCall(streamed(text("So"), finish("error")));
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient" });
  });

  it("an abort in the middle of a call runs nothing, and the upstream sees it", async () => {
    const stop = new AbortController();
    const slow = {
      ...cut(text("Now"), call(0, "call_1", '{"city":"Oslo"}'), text("…")),
      chunk: { mode: "event", delayMs: 50 },
      end: "stall" as const,
    };
    const onFrame = (frame: { kind: string }) => {
      if (frame.kind === "function_call") stop.abort();
    };
    const { message } = await anOwnCall(slow, { signal: stop.signal, onFrame });
    expect(message).toMatchObject({
      stop_reason: "aborted",
      error_kind: null,
      error_message: null,
      content: [{ text: "Now" }],
    });
    expect(calls(message)).toEqual([]);
  });
});

describe("calls", () => {
  const fn = (name: string | null, args: unknown = "") => ({ name, arguments: args });

  it("get an id of their own when the server sends none", async () => {
    const { message } = await anOwnCall(
      streamed(
        fragment({ index: 0, function: fn("{{tool:0}}", "{}") }),
        fragment({ index: 1, function: fn("{{tool:1}}", "{}") }),
        finish("tool_calls"),
      ),
    );
    const ids = message.content.map((block) => (block.type === "function_call" ? block.id : ""));
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^call_[\w-]+$/);
  });

  it("are told apart by id when the server numbers all of them 0 or none at all", async () => {
    for (const index of [{ index: 0 }, {}]) {
      const { message } = await anOwnCall(
        streamed(
          fragment({ ...index, id: "a", function: fn("{{tool:0}}", '{"n":') }),
          fragment({ ...index, function: { arguments: "1}" } }),
          fragment({ ...index, id: "b", function: fn("{{tool:1}}", '{"n":') }),
          fragment({ ...index, function: { arguments: "2}" } }),
          finish("tool_calls"),
        ),
      );
      expect(message.content).toMatchObject([
        { id: "a", function_id: "get_weather", arguments: { n: 1 } },
        { id: "b", function_id: "get_time", arguments: { n: 2 } },
      ]);
    }
  });

  it("may repeat id and name in every fragment, and send arguments as an object", async () => {
    const { message } = await anOwnCall(
      streamed(
        fragment({ index: 0, id: "a", function: fn("{{tool:0}}", '{"n":') }),
        fragment({ index: 0, id: "a", function: fn("{{tool:0}}", "1}") }),
        fragment({ index: 1, id: "b", function: fn("{{tool:1}}", { n: 2 }) }),
        finish("tool_calls"),
      ),
    );
    expect(message.content).toMatchObject([{ arguments: { n: 1 } }, { arguments: { n: 2 } }]);
  });

  it("without a name are dropped, and the reason alone is an end", async () => {
    const { message } = await anOwnCall(
      streamed(text("Hm"), fragment({ index: 0, id: "a", function: fn(null, "{}") }), finish("tool_calls")),
    );
    expect(message).toMatchObject({ stop_reason: "end", content: [{ text: "Hm" }] });
  });

  it("come in the old form too", async () => {
    const { message } = await anOwnCall(
      streamed(
        delta({ function_call: fn("{{tool:0}}", '{"city":') }),
        delta({ function_call: { arguments: '"Oslo"}' } }),
        finish("function_call"),
      ),
    );
    expect(message.content).toMatchObject([{ function_id: "get_weather", arguments: { city: "Oslo" } }]);
  });

  it.each([
    ["", {}],
    ['{"a":', '{"a":'],
    ["nope", "nope"],
    ["null", null],
  ])("keep their arguments %j as %j", async (json, value) => {
    const { message } = await anOwnCall(streamed(call(0, "call_1", ...json), finish("tool_calls")));
    expect(message).toMatchObject({
      stop_reason: "function_call",
      content: [{ id: "call_1", provider_call_id: "call_1" }],
    });
    expect(message.content[0]).toHaveProperty("arguments", value);
  });

  it("stand where they came among the text", async () => {
    const { message, frames } = await anOwnCall(
      streamed(text("Before."), call(0, "call_1", "{}"), text("After."), call(1, "call_2", "{}"), finish("tool_calls")),
    );
    expect(message.content.map(({ type }) => type)).toEqual(["text", "function_call", "text", "function_call"]);
    expect(frames.map(({ block }) => block)).toEqual([0, 1, 2, 3]);
  });
});

describe("text", () => {
  it("is whole when a surrogate pair is split between two chunks, in frames and in the message", async () => {
    const { message, frames } = await anOwnCall({
      ...streamed(text("a\ud83c", "\udf0db"), finish("stop")),
      escapeNonAscii: true,
    });
    expect(message.content).toEqual([{ type: "text", text: "a🌍b" }]);
    expect(frames.map(({ offset, text: piece }) => [offset, piece])).toEqual([
      [0, "a"],
      [1, "🌍b"],
    ]);
  });

  it("comes as parts or as a whole message from some servers", async () => {
    const parts = delta({
      content: [
        { type: "text", text: "Pa" },
        { type: "text", text: "rts" },
      ],
    });
    expect((await anOwnCall(streamed(parts, finish("stop")))).message.content).toMatchObject([{ text: "Parts" }]);
    const json = {
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "Whole." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
    };
    expect((await anOwnCall({ json })).message).toMatchObject({
      stop_reason: "end",
      content: [{ text: "Whole." }],
      usage: { input: 3, output: 2 },
    });
  });

  it("of other choices is not ours", async () => {
    const other = { choices: [{ index: 1, delta: { content: "no" }, finish_reason: "stop" }] };
    const { message } = await anOwnCall(streamed(text("yes"), other, finish("stop")));
    expect(message.content).toMatchObject([{ text: "yes" }]);
  });

  it("that reasons is a block of its own, before what it leads to", async () => {
    const { message } = await anOwnCall(
      streamed(delta({ reasoning: "Hm" }), delta({ reasoning_content: "m." }), text("So."), finish("stop")),
    );
    expect(message.content).toEqual([
      { type: "thinking", text: "Hmm." },
      { type: "text", text: "So." },
    ]);
  });
});

describe("usage", () => {
  it.each([
    ["the last totals, not sums", [usage(10, 1), usage(10, 5), usage(10, 7)], { input: 10, output: 7 }],
    [
      "totals inside the last choice count",
      [{ choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 9, completion_tokens: 4, cached_tokens: 3 } }] }],
      { input: 6, cache_read: 3, output: 4 },
    ],
    ["null in between is no usage", [usage(10, 7), { choices: [], usage: null }], { input: 10, output: 7 }],
    [
      "cached tokens are taken out of the input",
      [usage(100, 7, { prompt_tokens_details: { cached_tokens: 60 } })],
      { input: 40, cache_read: 60 },
    ],
    [
      "reasoning inside the completion counts once",
      [usage(10, 90, { total_tokens: 100, completion_tokens_details: { reasoning_tokens: 70 } })],
      { output: 90 },
    ],
    [
      "reasoning beside the completion is added",
      [usage(10, 20, { total_tokens: 100, completion_tokens_details: { reasoning_tokens: 70 } })],
      { output: 90 },
    ],
    [
      "more cached than prompt tokens is no negative input",
      [usage(10, 1, { prompt_tokens_details: { cached_tokens: 60 } })],
      { input: 0 },
    ],
  ])("%s", async (_, chunks, wanted) => {
    const { message } = await anOwnCall(streamed(text("Ok"), finish("stop"), chunks));
    expect(message.usage).toMatchObject(wanted);
  });

  it("is null when the server sends none", async () => {
    expect((await anOwnCall(streamed(text("Ok"), finish("stop")))).message.usage).toBeNull();
  });
});
