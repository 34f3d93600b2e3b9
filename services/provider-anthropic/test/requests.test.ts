// What this worker sends: transcripts of every kind, all of them accepted by the vendor's rules.
import { describe, expect, it } from "vitest";
import { end, start, text } from "../../../test/upstream/messages-events.ts";
import { anOwnCall, streamed } from "./an-own-call.ts";

type Fields = Record<string, unknown>;
const ok = streamed(start(), text(0, "ok"), end("end_turn"));
const user = (...content: unknown[]): Fields => ({ role: "user", content: content.map(textIfString) });
const assistant = (content: unknown[], fields: Fields = {}): Fields => ({
  role: "assistant",
  content: content.map(textIfString),
  provider: "anthropic",
  model: "claude-fixture-1",
  ...fields,
});
const call = (id: string, args: unknown = { city: "Oslo" }, fields: Fields = {}): Fields => ({
  type: "function_call",
  id,
  function_id: "get_weather",
  arguments: args,
  ...fields,
});
const result = (id: string, content: unknown[], fields: Fields = {}): Fields => ({
  role: "function_result",
  function_call_id: id,
  function_id: "get_weather",
  content: content.map(textIfString),
  ...fields,
});
const image = (data = "aGVsbG8=", mime = "image/png"): Fields => ({ type: "image", mime, data });
const textIfString = (block: unknown): unknown => (typeof block === "string" ? { type: "text", text: block } : block);

interface Body {
  model: string;
  max_tokens: number;
  system?: unknown;
  messages: { role: string; content: Fields[] }[];
  tools: Fields[];
  thinking?: Fields;
}

/** The request of a transcript; fails when the vendor would refuse it. */
async function sent(messages: unknown[], fields: Fields = {}) {
  const { requests, message } = await anOwnCall(ok, { call: { messages, ...fields } });
  expect(requests[0]?.violations).toEqual([]);
  expect(message.stop_reason).toBe("end");
  return { body: requests[0]?.body as unknown as Body, headers: requests[0]?.headers ?? {} };
}

describe("the transcript", () => {
  it("puts results first and in the order of the calls, then what the user said meanwhile", async () => {
    const { body } = await sent([
      assistant(["Both.", call("a"), call("b")]),
      user("and tomorrow?"),
      result("b", ["rain"]),
      result("a", ["sunny"]),
      user("hurry"),
    ]);
    expect(body.messages).toHaveLength(3);
    expect(body.messages[2]?.content).toMatchObject([
      { type: "tool_result", tool_use_id: "a", content: [{ text: "sunny" }] },
      { type: "tool_result", tool_use_id: "b", content: [{ text: "rain" }] },
      { type: "text", text: "and tomorrow?" },
      { type: "text", text: "hurry" },
    ]);
  });

  it("gives a call without a result one that says so, and drops a result without a call (I5)", async () => {
    const { body } = await sent([result("ghost", ["boo"]), assistant([call("a")]), user("next")]);
    const [answer] = body.messages[2]?.content ?? [];
    expect(answer).toMatchObject({ type: "tool_result", tool_use_id: "a", is_error: true });
    expect(JSON.stringify(body)).not.toContain("boo");
  });

  it("takes the latest of several results of one call", async () => {
    const { body } = await sent([assistant([call("a")]), result("a", ["old"]), result("a", ["new"])]);
    expect(body.messages[2]?.content).toMatchObject([{ content: [{ text: "new" }] }]);
    expect(body.messages[2]?.content).toHaveLength(1);
  });

  it("keeps ids unique when a vendor used one twice, each with its own result", async () => {
    const again = (n: number) => call(`t-1-${n}-0`, { n }, { provider_call_id: "call_0" });
    const { body } = await sent([
      assistant([again(1)]),
      result("t-1-1-0", ["one"]),
      assistant([again(2)]),
      result("t-1-2-0", ["two"]),
    ]);
    expect(body.messages[1]?.content).toMatchObject([{ id: "call_0" }]);
    expect(body.messages[3]?.content).toMatchObject([{ id: "t-1-2-0", input: { n: 2 } }]);
    expect(body.messages[4]?.content).toMatchObject([{ tool_use_id: "t-1-2-0", content: [{ text: "two" }] }]);
  });

  it("uses the vendor's own id only on the vendor's own calls", async () => {
    const foreign = call("t-1-1-0", {}, { provider_call_id: "functions.get_weather:0" });
    const { body } = await sent([assistant([foreign], { provider: "kimi" }), result("t-1-1-0", ["x"])]);
    expect(body.messages[1]?.content).toMatchObject([{ id: "t-1-1-0" }]);
  });

  it("makes any id legal", async () => {
    const odd = `functions.get weather:${"9".repeat(80)}`;
    const { body } = await sent([assistant([call(odd)]), result(odd, ["x"])]);
    expect(body.messages[1]?.content[0]?.id).toBe(body.messages[2]?.content[0]?.tool_use_id);
  });

  it("skips custom messages, failed answers without content, and blank text", async () => {
    const { body } = await sent([
      { role: "custom", custom_type: "note", content: [{ type: "text", text: "secret note" }] },
      assistant([], { stop_reason: "error", error_kind: "transient" }),
      assistant(["", " \n"]),
      user(" ", "hello", ""),
    ]);
    expect(body.messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "scenario:own" },
          { type: "text", text: "hello" },
        ],
      },
    ]);
  });

  it("still asks something when the newest message is blank", async () => {
    const { body } = await sent([assistant(["Hi."]), user("  ")]);
    expect(body.messages.at(-1)).toEqual({ role: "user", content: [{ type: "text", text: "(empty message)" }] });
  });

  it("trims a final answer that the model is to continue", async () => {
    const { body } = await sent([assistant(["The answer is \n"])]);
    expect(body.messages.at(-1)?.content).toMatchObject([{ type: "text", text: "The answer is" }]);
  });

  it.each([null, '{"city":', [1], 7])("sends an object for the arguments %j", async (args) => {
    const { body } = await sent([assistant([call("a", args)]), result("a", ["not an object"])]);
    expect(body.messages[1]?.content).toMatchObject([{ input: {} }]);
  });

  it("replaces half a surrogate pair, which is no UTF-8", async () => {
    const { body } = await sent([user("a\ud83c"), assistant([call("a")]), result("a", ["b\udf0d"])]);
    expect(body.messages[0]?.content).toMatchObject([{}, { text: "a\ufffd" }]);
    expect(body.messages[2]?.content).toMatchObject([{ content: [{ text: "b\ufffd" }] }]);
  });
});

describe("results", () => {
  it("marks a denial and quotes its envelope", async () => {
    const details = {
      schema_version: 1,
      status: "denied",
      denied_by: "user",
      function_id: "get_weather",
      reason: "no",
    };
    const { body } = await sent([assistant([call("a")]), result("a", ["Not today."], { details, is_error: true })]);
    expect(body.messages[2]?.content).toMatchObject([
      { is_error: true, content: [{ text: `[PERMISSION_DENIED]\n${JSON.stringify(details)}\n\nNot today.` }] },
    ]);
  });

  it("says that there was no output, for an error too", async () => {
    const { body } = await sent([
      assistant([call("a"), call("b")]),
      result("a", [""]),
      result("b", [], { is_error: true }),
    ]);
    expect(body.messages[2]?.content).toMatchObject([
      { content: [{ text: "(no output)" }] },
      { content: [{ text: "(no output)" }] },
    ]);
  });

  it("holds images behind the text", async () => {
    const { body } = await sent([assistant([call("a")]), result("a", [image(), "a cat"])]);
    expect(body.messages[2]?.content[0]?.content).toEqual([
      { type: "text", text: "a cat" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "aGVsbG8=" } },
    ]);
  });
});

describe("images of a failure", () => {
  it("stand behind all results, because the API takes only text in a result that is an error", async () => {
    const { body } = await sent([
      assistant([call("a"), call("b")]),
      result("a", ["torn", image()], { is_error: true }),
      result("b", ["fine"]),
    ]);
    expect(body.messages[2]?.content).toMatchObject([
      { tool_use_id: "a", is_error: true, content: [{ type: "text", text: "torn" }] },
      { tool_use_id: "b" },
      { type: "text", text: "Images of the result of get_weather:" },
      { type: "image" },
    ]);
    expect(body.messages[2]?.content[0]?.content).toHaveLength(1);
  });
});

describe("images", () => {
  it("are sent in place, cleaned of a data prefix, line breaks and the URL alphabet", async () => {
    const { body } = await sent([user("look", image("data:image/jpg;base64,ab-_\nab==", "image/JPG"), "there")]);
    expect(body.messages[0]?.content.slice(2)).toEqual([
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "ab+/ab==" } },
      { type: "text", text: "there" },
    ]);
  });

  it.each([
    [image("aGVsbG8=", "image/tiff"), "image/tiff is not supported"],
    [image("###"), "not valid base64"],
    [image(""), "not valid base64"],
  ])("that no vendor takes become a sentence", async (block, words) => {
    const { body } = await sent([user(block)]);
    expect(body.messages[0]?.content.at(-1)?.text).toContain(words);
  });

  it("become a sentence for a model without vision", async () => {
    const meta = { id: "m", provider: "anthropic", context_window: 1000, supports_vision: false };
    const { body } = await sent([user(image())], { model_meta: meta });
    expect(body.messages[0]?.content.at(-1)?.text).toContain("takes no images");
  });
});

describe("thinking", () => {
  const sealed = { type: "thinking", text: "Hmm.", signature: "EqSealedSignature1==" };
  const catalogue = { id: "m", provider: "anthropic", context_window: 200_000, max_output_tokens: 32_000 };

  it("goes back unchanged with its signature, redacted or not", async () => {
    const redacted = { type: "thinking", text: "", redacted: "b3BhcXVl" };
    const { body } = await sent([assistant([sealed, redacted, "So.", call("a")]), result("a", ["x"])]);
    expect(body.messages[1]?.content.slice(0, 2)).toEqual([
      { type: "thinking", thinking: "Hmm.", signature: "EqSealedSignature1==" },
      { type: "redacted_thinking", data: "b3BhcXVl" },
    ]);
  });

  it.each([
    ["without a signature", { type: "thinking", text: "Hmm." }, "anthropic"],
    ["of another provider", sealed, "kimi"],
    ["with a signature of another form", { ...sealed, signature: "not-one" }, "gateway"],
  ])("%s stays here", async (_, block, provider) => {
    const { body } = await sent([assistant([block, "So."], { provider }), user("go on")]);
    expect(body.messages[1]?.content).toMatchObject([{ type: "text", text: "So." }]);
  });

  it("goes back to the same API under a gateway's name", async () => {
    const { body } = await sent([assistant([sealed, "So."], { provider: "gateway" }), user("go on")]);
    expect(body.messages[1]?.content[0]?.type).toBe("thinking");
  });

  it("at the end of a cut answer is dropped, and an answer of thinking alone too", async () => {
    const { body } = await sent([assistant(["So.", sealed]), user("and"), assistant([sealed]), user("go on")]);
    expect(body.messages.map(({ content }) => content.map(({ type }) => type))).toEqual([
      ["text"],
      ["text"],
      ["text", "text"],
    ]);
  });

  it.each([
    ["minimal", 4_000],
    ["low", 4_000],
    ["medium", 8_000],
    ["high", 15_999],
    ["xhigh", 15_999],
  ])("level %s is a budget of %i of 32000 output tokens", async (level, budget) => {
    const { body, headers } = await sent([], { thinking_level: level, model_meta: catalogue });
    expect(body.thinking).toEqual({ type: "enabled", budget_tokens: budget });
    expect(headers["anthropic-beta"]).toBe("interleaved-thinking-2025-05-14");
  });

  it("takes xhigh and the tiers of the catalog where it names them", async () => {
    const xhigh = await sent([], { thinking_level: "xhigh", model_meta: { ...catalogue, supports_xhigh: true } });
    expect(xhigh.body.thinking?.budget_tokens).toBe(30_976);
    const tier = await sent([], {
      thinking_level: "low",
      model_meta: { ...catalogue, thinking_budgets: { low: 2_048 } },
    });
    expect(tier.body.thinking?.budget_tokens).toBe(2_048);
  });

  it.each([
    ["off", catalogue, {}],
    ["high", { ...catalogue, supports_thinking: false }, {}],
    ["high", { ...catalogue, max_output_tokens: undefined }, {}],
    ["high", { ...catalogue, max_output_tokens: 2_000 }, {}],
    ["high", catalogue, { max_tokens: 1_500 }],
  ])("level %s is not asked for where it cannot be", async (level, meta, fields) => {
    const { body } = await sent([], { thinking_level: level, model_meta: meta, ...fields });
    expect(body.thinking).toBeUndefined();
  });

  it("pauses for a call that was made without it", async () => {
    const made = [assistant(["So.", call("a")], { provider: "openai" }), result("a", ["x"])];
    expect((await sent(made, { thinking_level: "high", model_meta: catalogue })).body.thinking).toBeUndefined();
    const own = [assistant([sealed, call("a")]), result("a", ["x"])];
    expect((await sent(own, { thinking_level: "high", model_meta: catalogue })).body.thinking).toBeDefined();
  });
});

describe("prompt cache", () => {
  const long = "x".repeat(4_096);
  const marked = (value: unknown): number => JSON.stringify(value).split("cache_control").length - 1;

  it("marks a long system prompt, long tools and the newest answer, thinking excepted", async () => {
    const tools = [
      { name: "a::b", description: long, parameters: { type: "object" } },
      { name: "c::d", description: "", parameters: {} },
    ];
    const { body } = await sent([assistant(["One."]), user("x"), assistant(["Two.", call("a")]), result("a", ["r"])], {
      system_prompt: long,
      tools,
    });
    expect([marked(body.system), marked(body.tools), marked(body.messages)]).toEqual([1, 1, 1]);
    expect(body.tools[1]?.cache_control).toEqual({ type: "ephemeral" });
    expect(body.messages[3]?.content.at(-1)).toMatchObject({ type: "tool_use", cache_control: { type: "ephemeral" } });
  });

  it("leaves short ones alone, and all when it is switched off", async () => {
    const { body } = await sent([user("x")], { system_prompt: "short" });
    expect([body.system, marked(body)]).toEqual(["short", 0]);
    const meta = { id: "m", provider: "anthropic", context_window: 1_000, supports_cache: false };
    expect(marked((await sent([assistant(["One."]), user("x")], { system_prompt: long, model_meta: meta })).body)).toBe(
      0,
    );
  });
});

describe("tools and limits", () => {
  it("names functions as the vendor allows and maps the answer back", async () => {
    const long = `demo::${"a".repeat(60)}::${"b".repeat(60)}`;
    const tools = [long, "demo::lookup", "web.search", "web search"].map((name) => ({
      name,
      description: "",
      parameters: { type: "object" },
    }));
    const { requests } = await anOwnCall(ok, { call: { tools } });
    expect(requests[0]?.violations).toEqual([]);
    const names = ((requests[0]?.body.tools ?? []) as { name: string }[]).map(({ name }) => name);
    expect(names.slice(1, 3)).toEqual(["demo__lookup", "web_search"]);
    for (const [index, name] of names.entries()) {
      const reply = streamed(
        start(),
        [
          { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t", name, input: {} } },
          { type: "content_block_stop", index: 0 },
        ],
        end("tool_use"),
      );
      const { message } = await anOwnCall(reply, { call: { tools } });
      expect(message.content).toMatchObject([{ function_id: tools[index]?.name }]);
    }
  });

  it("names a function of an earlier turn that is no longer offered", async () => {
    const old = { ...call("a"), function_id: "demo::lookup" };
    const { body } = await sent([assistant([old]), result("a", ["x"])]);
    expect(body.messages[1]?.content).toMatchObject([{ name: "demo__lookup" }]);
  });

  it("sends no empty fields", async () => {
    const { body } = await sent([user("x")], { tools: [], system_prompt: "  " });
    expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model", "stream"]);
  });

  it.each([
    [{}, 32_000],
    [{ max_tokens: 100 }, 100],
    [{ max_tokens: 99_999 }, 32_000],
    [{ model: "unknown-model" }, 8_192],
  ])("asks for %j with max_tokens %i", async (fields, most) => {
    expect((await sent([], fields)).body.max_tokens).toBe(most);
  });
});

describe("credentials", () => {
  it("sends a key as x-api-key, and a token as bearer with its beta", async () => {
    const byKey = await anOwnCall(ok);
    expect(byKey.requests[0]?.headers["x-api-key"]).toBe("***");
    const token = { type: "oauth", access_token: "tok" };
    const byToken = await anOwnCall(ok, { credential: token });
    expect(byToken.requests[0]?.headers).toMatchObject({
      authorization: "Bearer ***",
      "anthropic-beta": "oauth-2025-04-20",
    });
    expect(byToken.requests[0]?.headers["x-api-key"]).toBeUndefined();
  });

  it("names the variable when there is none, and asks nobody", async () => {
    const { message, requests } = await anOwnCall(ok, { credential: null });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "auth_expired" });
    expect(message.error_message).toBe("CREDENTIALS_MISSING: no credential for anthropic; set ANTHROPIC_API_KEY");
    expect(requests).toEqual([]);
  });
});

describe("complete", () => {
  it("gives the same message and sends no frames", async () => {
    const { message, frames, stored, streamed: hasStreamed } = await anOwnCall(ok, { complete: true });
    expect(message).toMatchObject({ stop_reason: "end", content: [{ text: "ok" }] });
    expect([frames, stored, hasStreamed]).toEqual([[], [], false]);
  });
});
