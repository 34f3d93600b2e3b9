// What this worker sends: transcripts of every kind, all of them accepted by the vendor's rules.
import { describe, expect, it } from "vitest";
import { finish, text } from "../../../test/upstream/chat-chunks.ts";
import { anOwnCall, streamed } from "./an-own-call.ts";

type Fields = Record<string, unknown>;
const ok = streamed(text("ok"), finish("stop"));
const blocks = (content: unknown[]): unknown[] =>
  content.map((block) => (typeof block === "string" ? { type: "text", text: block } : block));
const user = (...content: unknown[]): Fields => ({ role: "user", content: blocks(content) });
const assistant = (content: unknown[], fields: Fields = {}): Fields => ({
  role: "assistant",
  content: blocks(content),
  provider: "openai",
  ...fields,
});
const call = (id: string, args: unknown = { city: "Oslo" }, fields: Fields = {}): Fields => ({
  type: "function_call",
  id,
  function_id: "demo::lookup",
  arguments: args,
  ...fields,
});
const result = (id: string, content: unknown[], fields: Fields = {}): Fields => ({
  role: "function_result",
  function_call_id: id,
  function_id: "demo::lookup",
  content: blocks(content),
  ...fields,
});
const image = (data = "aGVsbG8=", mime = "image/png"): Fields => ({ type: "image", mime, data });

interface Body {
  messages: {
    role: string;
    content: unknown;
    tool_call_id?: string;
    tool_calls?: { id: string; function: Fields }[];
  }[];
  tools?: { function: Fields }[];
  [field: string]: unknown;
}

async function sent(messages: unknown[], fields: Fields = {}): Promise<Body> {
  const { requests, message } = await anOwnCall(ok, { call: { messages, ...fields } });
  expect(requests[0]?.violations).toEqual([]);
  expect(message.stop_reason).toBe("end");
  return requests[0]?.body as unknown as Body;
}

describe("the transcript", () => {
  it("answers calls right behind them and in order, errors too, without fields of ours", async () => {
    const body = await sent([
      assistant(["Both.", call("a"), call("b")]),
      user("hurry"),
      result("b", ["boom"], { is_error: true }),
      result("a", ["sunny"]),
    ]);
    expect(body.messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: "Both.",
        tool_calls: ["a", "b"].map((id) => ({
          id,
          type: "function",
          function: { name: "demo__lookup", arguments: '{"city":"Oslo"}' },
        })),
      },
      { role: "tool", tool_call_id: "a", content: "sunny" },
      { role: "tool", tool_call_id: "b", content: "boom" },
      { role: "user", content: "hurry" },
    ]);
  });

  it("gives a call without a result one that says so, and drops a result without a call (I5)", async () => {
    const body = await sent([result("ghost", ["boo"]), assistant([call("a")]), user("next")]);
    expect(body.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
    expect(JSON.stringify(body)).not.toContain("boo");
  });

  it("shortens ids that the vendor finds too long, the same for call and result", async () => {
    const id = `t-${"a".repeat(50)}-1-0`;
    const body = await sent([assistant([call(id)]), result(id, ["x"])]);
    expect(body.messages[1]?.tool_calls?.[0]?.id).toBe(body.messages[2]?.tool_call_id);
    expect(body.messages[2]?.tool_call_id?.length).toBe(40);
  });

  it("keeps ids unique when a vendor used one twice", async () => {
    const again = (n: number) => call(`t-1-${n}-0`, { n }, { provider_call_id: "call_0" });
    const body = await sent([
      assistant([again(1)]),
      result("t-1-1-0", ["one"]),
      assistant([again(2)]),
      result("t-1-2-0", ["two"]),
    ]);
    expect(body.messages.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(["call_0", "t-1-2-0"]);
  });

  it("leaves thinking, custom messages, failed and empty answers out", async () => {
    const body = await sent([
      { role: "custom", custom_type: "note", content: [{ type: "text", text: "note" }] },
      assistant([{ type: "thinking", text: "Hm", signature: "E123456789" }]),
      assistant([], { stop_reason: "error" }),
      assistant([" "]),
      user("hello"),
    ]);
    expect(body.messages).toEqual([
      { role: "user", content: "scenario:own" },
      { role: "user", content: "hello" },
    ]);
  });

  it.each([null, '{"a":', "x"])("sends a JSON document for the arguments %j", async (args) => {
    const body = await sent([assistant([call("a", args)]), result("a", ["not an object"])]);
    expect(body.messages[1]?.tool_calls?.[0]?.function.arguments).toBe("{}");
  });

  it("puts the system prompt first, and none when it is blank", async () => {
    expect((await sent([], { system_prompt: "Be brief." })).messages[0]).toEqual({
      role: "system",
      content: "Be brief.",
    });
    expect((await sent([], { system_prompt: " " })).messages[0]?.role).toBe("user");
  });

  it("marks a denial and quotes its envelope", async () => {
    const details = { status: "denied", denied_by: "permissions", reason: "rule 1" };
    const body = await sent([assistant([call("a")]), result("a", ["No."], { details, is_error: true })]);
    expect(body.messages[2]?.content).toBe(`[PERMISSION_DENIED]\n${JSON.stringify(details)}\n\nNo.`);
  });
});

describe("images", () => {
  it("of a user are parts in place", async () => {
    const body = await sent([user("look", image(), "there")]);
    expect(body.messages[1]?.content).toEqual([
      { type: "text", text: "look" },
      { type: "image_url", image_url: { url: "data:image/png;base64,aGVsbG8=" } },
      { type: "text", text: "there" },
    ]);
  });

  it("of results follow the last result, where the vendor allows them", async () => {
    const body = await sent([assistant([call("a"), call("b")]), result("a", [image()]), result("b", ["text"])]);
    expect(body.messages.slice(2)).toEqual([
      { role: "tool", tool_call_id: "a", content: "(see the images)" },
      { role: "tool", tool_call_id: "b", content: "text" },
      {
        role: "user",
        content: [
          { type: "text", text: "Images of the result of demo::lookup:" },
          { type: "image_url", image_url: { url: "data:image/png;base64,aGVsbG8=" } },
        ],
      },
    ]);
  });

  it("that the vendor does not take become a sentence", async () => {
    const body = await sent([user(image("x", "image/bmp"))]);
    expect(body.messages[1]?.content).toContain("image/bmp is not supported");
  });
});

describe("fields", () => {
  it("asks for a stream with usage, and limits the answer in the field of today", async () => {
    const body = await sent([], { max_tokens: 77 });
    expect(body).toMatchObject({ stream: true, stream_options: { include_usage: true }, max_completion_tokens: 77 });
    expect(body.max_tokens).toBeUndefined();
    expect((await sent([])).max_completion_tokens).toBe(16_384);
    expect((await sent([], { model: "unknown" })).max_completion_tokens).toBe(8_192);
  });

  it("sends no empty list of tools, and names that the vendor takes", async () => {
    expect((await sent([], { tools: [] })).tools).toBeUndefined();
    const tools = ["demo::lookup", `x::${"y".repeat(64)}::${"z".repeat(64)}`, "demo::lookup"].map((name) => ({
      name,
      description: "d".repeat(2_000),
      parameters: { type: "object" },
    }));
    const body = await sent([], { tools });
    expect(body.tools).toHaveLength(2);
    expect(body.tools?.[0]?.function).toMatchObject({
      name: "demo__lookup",
      parameters: { type: "object", properties: {} },
    });
    expect(String(body.tools?.[0]?.function.description)).toHaveLength(1_024);
  });

  it.each([
    ["high", { supports_thinking: true }, "high"],
    ["xhigh", { supports_thinking: true }, "high"],
    ["xhigh", { supports_thinking: true, supports_xhigh: true }, "xhigh"],
    ["off", { supports_thinking: true }, undefined],
    ["high", {}, undefined],
  ])("thinking level %s of a model with %j is effort %s", async (level, capabilities, effort) => {
    const meta = { id: "m", provider: "openai", context_window: 1_000, ...capabilities };
    expect((await sent([], { thinking_level: level, model_meta: meta })).reasoning_effort).toBe(effort);
  });
});

describe("credentials and addresses", () => {
  it("sends the key as bearer", async () => {
    const { requests } = await anOwnCall(ok);
    expect(requests[0]?.headers.authorization).toBe("Bearer ***");
  });

  it("names the variable when there is no key, and asks nobody", async () => {
    const { message, requests } = await anOwnCall(ok, { credential: null });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "auth_expired" });
    expect(message.error_message).toBe("CREDENTIALS_MISSING: no credential for openai; set OPENAI_API_KEY");
    expect(requests).toEqual([]);
  });

  it("says that nobody answers at the address", async () => {
    const { message } = await anOwnCall(ok, { env: { OPENAI_BASE_URL: "http://127.0.0.1:1" } });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient" });
    expect(message.error_message).toContain("the connection failed");
  });
});
