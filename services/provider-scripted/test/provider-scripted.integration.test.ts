// The whole provider-scripted worker on a real bus, with its own login.
import { type Bus, connectBus } from "@flotilla/bus";
import {
  type AssistantMessage,
  type ProviderRequest,
  providerComplete,
  providerStream,
  randomId,
  scriptedCalls,
  subjects,
  type TokenFrame,
} from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { definition } from "../src/worker.ts";

const streamCall = providerStream("scripted");
const completeCall = providerComplete("scripted");

let nats: StartedNats;
let bus: Bus;
const running: WorkersHandle[] = [];

beforeAll(async () => {
  nats = await startNats();
  const logger = createLogger({ level: "error", name: "test" });
  bus = await connectBus({ url: nats.url, worker: "operator", instance: randomId(), logger });
});
afterEach(async () => {
  for (const handle of running.splice(0)) await handle.stop();
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});

async function start(): Promise<WorkersHandle> {
  const handle = runWorkers({
    definitions: [definition],
    env: {
      NATS_URL: nats.address,
      NATS_CREDENTIALS_FILE: nats.credentialsFile,
      LOG_LEVEL: "silent",
      FLOTILLA_SCRIPTED_WORD_MS: "1",
    },
  });
  running.push(handle);
  await handle.ready();
  await until(() => bus.registry.resolve(streamCall.id)?.live, { what: "the caller has heard of the worker" });
  return handle;
}

function aRequest(text: string, fields: Partial<ProviderRequest> = {}): ProviderRequest {
  return {
    session_id: randomId(),
    turn_id: "t-1",
    message_id: randomId(),
    model: "play",
    messages: [{ role: "user", content: [{ type: "text", text }], timestamp: 7 }],
    ...fields,
  };
}

interface Reply {
  message: AssistantMessage;
  streamed: boolean;
}
const stream = async (request: ProviderRequest, options = {}): Promise<Reply> =>
  (await bus.call(streamCall, request, { timeoutMs: 10_000, ...options })) as Reply;
const calls = async (sessionId = "") => {
  const reply = await bus.callId(scriptedCalls.id, { session_id: sessionId });
  return (reply as z.output<typeof scriptedCalls.response>).calls;
};

async function framesOf(sessionId = ""): Promise<TokenFrame[]> {
  const frames: TokenFrame[] = [];
  bus.nc.subscribe(subjects.tokens(sessionId), {
    callback: (_, message) => void frames.push(message.json<TokenFrame>()),
  });
  await bus.nc.flush();
  return frames;
}

describe("a scripted stream", () => {
  it("sends exactly these frames, stores them joined, and answers the message they add up to", async () => {
    await start();
    const request = aRequest('think so\nsay Zürich 🌍 ok\ncall demo::echo {"text":"🌍"}\nsay bye\nusage 100 20');
    const frames = await framesOf(request.session_id);
    const { message, streamed } = await stream(request);
    const { message_id } = request;
    const expected = [
      { block: 0, kind: "thinking", offset: 0, text: "so" },
      { block: 1, kind: "text", offset: 0, text: "Zürich " },
      { block: 1, kind: "text", offset: 7, text: "🌍 " },
      { block: 1, kind: "text", offset: 10, text: "ok" },
      { block: 2, kind: "function_call", offset: 0, text: '{"text":"🌍"}' },
      { block: 3, kind: "text", offset: 0, text: "bye" },
    ].map((frame, n) => ({ turn_id: "t-1", message_id, n, ...frame }));
    await until(() => frames.length >= expected.length, { what: "every frame arrives" });
    expect(frames).toEqual(expected);
    const stored = await bus.deltas.read(request.session_id ?? "", message_id ?? "");
    expect(stored.map(({ block, kind, offset, text }) => ({ block, kind, offset, text }))).toEqual([
      { block: 0, kind: "thinking", offset: 0, text: "so" },
      { block: 1, kind: "text", offset: 0, text: "Zürich 🌍 ok" },
      { block: 2, kind: "function_call", offset: 0, text: '{"text":"🌍"}' },
      { block: 3, kind: "text", offset: 0, text: "bye" },
    ]);
    expect(streamed).toBe(true);
    const id = `call-${message_id}-0`;
    expect(message).toMatchObject({
      role: "assistant",
      stop_reason: "function_call",
      provider: "scripted",
      model: "play",
      usage: { input: 100, output: 20, cost_microusd: 140, cost_usd: 0.00014 },
      content: [
        { type: "thinking", text: "so" },
        { type: "text", text: "Zürich 🌍 ok" },
        { type: "function_call", id, provider_call_id: id, function_id: "demo::echo", arguments: { text: "🌍" } },
        { type: "text", text: "bye" },
      ],
    });
  });

  it("counts the characters of the request and the words said when the script states no usage", async () => {
    await start();
    const { message } = await stream(aRequest("say one two three\ntokens 2 0\nthink not counted"));
    expect(message.usage?.output).toBe(5);
    expect(message.usage?.input).toBeGreaterThan(20);
    expect(message.usage?.cost_microusd).toBe((message.usage?.input ?? 0) + 10);
  });

  it("complete sends no frame and answers the same", async () => {
    await start();
    const request = aRequest("say hello there");
    const frames = await framesOf(request.session_id);
    const { message, streamed } = (await bus.call(completeCall, request)) as Reply;
    expect(message.content).toEqual([{ type: "text", text: "hello there" }]);
    expect(streamed).toBe(false);
    await bus.nc.flush();
    expect(frames).toEqual([]);
    expect(await calls(request.session_id)).toHaveLength(1);
  });

  it("turns the name a model sees back into the function id", async () => {
    await start();
    const tools = [{ name: "demo::lookup", description: "", parameters: {} }];
    const { message } = await stream(aRequest("call demo__lookup\ncall nobody__knows", { tools }));
    expect(message.content).toMatchObject([{ function_id: "demo::lookup" }, { function_id: "nobody__knows" }]);
  });

  it.each([
    ["error auth_expired key is old", "auth_expired", "key is old"],
    ["cut", "transient", "the stream ended without a terminal signal"],
    ["delay x", "permanent", "script line 2: delay MS needs a whole number"],
  ])("answers `%s` as a message with stop_reason error", async (line, kind, text) => {
    await start();
    const { message } = await stream(aRequest(`call demo::echo\n${line}`));
    expect(message).toMatchObject({
      stop_reason: "error",
      error_kind: kind,
      error_message: text,
      content: [],
      usage: null,
    });
  });

  it.each(["delay 60000", "tokens 100000 5"])(
    "a cancel in `%s` ends the call with what was said (I14)",
    async (line) => {
      await start();
      const request = aRequest(`say begun\n${line}`);
      const frames = await framesOf(request.session_id);
      const key = `provider-scripted.${request.session_id}.t-1.1.m0.1`;
      const answer = stream(request, { idempotencyKey: key, epoch: 1 });
      await until(() => frames.length > 0, { what: "the first frame" });
      bus.nc.publish(subjects.cancel("provider-scripted", key), JSON.stringify({ reason: "stop", epoch: 1 }));
      const { message } = await answer;
      expect(message).toMatchObject({ stop_reason: "aborted", error_kind: null });
      const [block] = message.content;
      expect(block?.type === "text" ? block.text : "").toBe(frames.map((frame) => frame.text).join(""));
      expect(block).toMatchObject({ text: expect.stringMatching(/^begun/) });
    },
  );

  it("the demo model's greeting streams", async () => {
    await start();
    const request = aRequest("good morning", { model: "demo" });
    const frames = await framesOf(request.session_id);
    const { message } = await stream(request);
    expect(message).toMatchObject({
      stop_reason: "end",
      model: "demo",
      content: [{ text: expect.stringContaining("good morning") }],
    });
    await until(() => frames.length > 5, { what: "several frames arrive" });
  });
});

describe("the durable log of calls", () => {
  it("shows every execution that started, with its key, in order, and survives a SIGKILL of NATS", async () => {
    await start();
    const request = aRequest("say a");
    const key = (attempt: number) => `provider-scripted.${request.session_id}.t-1.1.m0.${attempt}`;
    await stream({ ...request, message_id: "m-1" }, { idempotencyKey: key(1), attempt: 1 });
    await stream({ ...request, message_id: "m-2" }, { idempotencyKey: key(2), attempt: 2 });
    // The same key again attaches to the outcome and starts nothing (I4).
    await stream({ ...request, message_id: "m-2" }, { idempotencyKey: key(2), attempt: 2 });
    await nats.kill();
    await nats.restart();
    await until(() => bus.connected, { what: "the bus is back" });
    const log = await until(() => calls(request.session_id), { what: "the log can be read" });
    expect(log).toEqual([
      { message_id: "m-1", block: 0, attempt: 1, idempotency_key: key(1), at: expect.any(Number) },
      { message_id: "m-2", block: 0, attempt: 2, idempotency_key: key(2), at: expect.any(Number) },
    ]);
  });

  it("is empty for a session that made no call", async () => {
    await start();
    expect(await calls("nobody")).toEqual([]);
  });
});

describe("fail-first", () => {
  const script = "fail-first 3 transient\nsay through";

  it("counts the attempts of a block over instances, also over one that is gone", async () => {
    const first = await start();
    const request = aRequest(script);
    const kindOf = async () => (await stream({ ...request, message_id: randomId() })).message.error_kind;
    expect(await kindOf()).toBe("transient");
    await start();
    expect(await kindOf()).toBe("transient");
    running.splice(running.indexOf(first), 1);
    await first.stop();
    expect(await kindOf()).toBe("transient");
    expect(await kindOf()).toBe(null);
    expect(await calls(request.session_id)).toHaveLength(4);
  });

  it("counts again from one for the next script of the session, though its text is the same", async () => {
    await start();
    const request = aRequest("fail-first 1 transient\nsay ok");
    expect((await stream(request)).message.stop_reason).toBe("error");
    expect((await stream(request)).message.stop_reason).toBe("end");
    const user = (timestamp: number) => ({
      role: "user" as const,
      content: [{ type: "text" as const, text: "fail-first 1 transient\nsay ok" }],
      timestamp,
    });
    const done = {
      role: "assistant" as const,
      content: [],
      stop_reason: "end" as const,
      model: "play",
      provider: "scripted",
    };
    const next = { ...request, messages: [user(7), done, user(8)] };
    expect((await stream(next)).message.error_message).toBe("scripted failure 1 of 1");
    expect((await stream(next)).message.stop_reason).toBe("end");
  });
});
