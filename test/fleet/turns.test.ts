import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assertValidTranscript, Client, newSession, textOf } from "./client.ts";

let fleet: StartedFleet;
let client: Client;

beforeAll(async () => {
  fleet = await startFleet({ env: { FLOTILLA_RETRY_BASE_MS: "20" } });
  client = new Client(fleet.url);
});
afterAll(() => fleet.stop());

describe("a turn", () => {
  it("answers and stops", async () => {
    const { messages, state } = await client.play("say hello there");
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant"]);
    expect(textOf(messages[1])).toBe("hello there");
    expect(state).toMatchObject({ state: "stopped", turn_count: 1, awaiting_approval: [] });
  });

  it("runs parallel calls and puts their results in the model's order (I5)", async () => {
    const { sid, messages } = await client.play(
      'call demo::slow {"ms":60}\ncall demo::echo {"text":"b"}\ncall demo::lookup {"order":"A1"}\n---\nsay done',
    );
    expect(messages.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "function_result",
      "function_result",
      "function_result",
      "assistant",
    ]);
    expect(messages.slice(2, 5).map((message) => message.function_id)).toEqual([
      "demo::slow",
      "demo::echo",
      "demo::lookup",
    ]);
    assertValidTranscript(messages);
    const started = (await client.effects(sid)).filter((effect) => effect.phase === "start");
    expect(started.map((effect) => effect.function_id).sort()).toEqual(["demo::echo", "demo::lookup", "demo::slow"]);
  });

  it("counts tokens and money of all its calls", async () => {
    const { state } = await client.play("usage 1000 100\ncall demo::echo {}\n---\nusage 500 50\nsay x");
    expect(state.usage).toMatchObject({ input: 1500, output: 150 });
    expect(state.cost_usd).toBeCloseTo(0.0018, 9);
  });

  it("parks on an approval without a process and releases the call with exactly the approved arguments (I9)", async () => {
    const sid = newSession();
    await client.start(sid, 'call demo::refund {"order":"A1","amount":5}\n---\nsay refunded');
    const parked = await client.reach(sid, "function_awaiting_approval");
    expect((await client.effects(sid)).length).toBe(0);
    const { approvals } = (await client.get(`/v1/approvals?session_id=${sid}`)).body;
    expect(approvals).toHaveLength(1);
    expect(approvals[0]).toMatchObject({ function_id: "demo::refund", args: { order: "A1", amount: 5 } });
    expect(parked.awaiting_approval).toHaveLength(1);
    const path = `/v1/sessions/${sid}/approvals/${approvals[0].function_call_id}`;
    expect((await client.post(path, { decision: "allow", args_digest: "sha256:wrong" })).status).toBe(409);
    expect((await client.post(path, { decision: "allow", args_digest: approvals[0].args_digest })).body).toEqual({
      ok: true,
    });
    await client.reach(sid, "stopped");
    expect((await client.post(path, { decision: "deny", args_digest: approvals[0].args_digest })).status).toBe(409);
    const effects = (await client.effects(sid)).filter((effect) => effect.phase === "start");
    expect(effects).toHaveLength(1);
    expect(effects[0]?.args).toEqual({ order: "A1", amount: 5 });
  });

  it("holds no sibling up while a call waits for a person", async () => {
    const sid = newSession();
    await client.start(sid, 'call demo::refund {"order":"A"}\ncall demo::echo {"text":"x"}\n---\nsay done');
    await client.reach(sid, "function_awaiting_approval");
    expect(
      (await client.effects(sid)).filter((effect) => effect.phase === "start").map((effect) => effect.function_id),
    ).toEqual(["demo::echo"]);
    const [approval] = (await client.get(`/v1/approvals?session_id=${sid}`)).body.approvals;
    await client.post(`/v1/sessions/${sid}/approvals/${approval.function_call_id}`, {
      decision: "deny",
      args_digest: approval.args_digest,
      reason: "not today",
    });
    await client.reach(sid, "stopped");
    const messages = await client.messages(sid);
    assertValidTranscript(messages);
    expect(messages[2]).toMatchObject({
      function_id: "demo::refund",
      is_error: true,
      details: { status: "denied", denied_by: "user" },
    });
    expect(textOf(messages[2])).toContain("not today");
  });

  it("lets an approval expire by its own TTL with the default decision deny", async () => {
    const { messages } = await client.play('call demo::refund {"order":"A"}\n---\nsay done', { approval_ttl_ms: 300 });
    expect(messages[2]).toMatchObject({ is_error: true });
    expect(textOf(messages[2])).toContain("expired");
  });

  it("answers an unknown function at once, without policy or people", async () => {
    const { messages } = await client.play('call nobody::home {"a":1}\n---\nsay done');
    expect(messages[2]).toMatchObject({ is_error: true, details: { error: "function_not_found" } });
  });

  it("does not run a call whose arguments are not an object", async () => {
    const { sid, messages } = await client.play("call demo::echo [1]\n---\nsay done");
    expect(messages[2]).toMatchObject({ is_error: true });
    expect(await client.effects(sid)).toEqual([]);
  });

  it("denies kernel functions whatever the file says", async () => {
    const { messages } = await client.play('call run::start {"session_id":"x","text":"y"}\n---\nsay done');
    expect(messages[2]).toMatchObject({ is_error: true, details: { status: "denied", denied_by: "permissions" } });
  });

  it("stops at max_turns with a notice in the transcript", async () => {
    const { messages } = await client.play("call demo::echo {}\n---\ncall demo::echo {}\n---\nsay never", {
      max_turns: 2,
    });
    expect(textOf(messages.at(-1))).toContain("max_turns");
    expect(messages.filter((message) => message.role === "assistant")).toHaveLength(3);
  });
});

describe("a model call that fails", () => {
  it("is tried again and the turn goes on", async () => {
    const { sid, messages } = await client.play("fail-first 2 transient\nsay made it");
    expect(textOf(messages.at(-1))).toBe("made it");
    expect((await client.trigger("provider::scripted::calls", { session_id: sid })).calls).toHaveLength(3);
  });

  it.each(["auth_expired", "permanent", "context_overflow"])(
    "is never repeated when it is %s, and stays in the transcript",
    async (kind) => {
      const { sid, messages, state } = await client.play(`error ${kind} no way`);
      expect(messages.at(-1)).toMatchObject({
        role: "assistant",
        stop_reason: "error",
        error_kind: kind,
        error_message: expect.stringContaining("no way"),
      });
      expect(state.state).toBe("stopped");
      expect((await client.trigger("provider::scripted::calls", { session_id: sid })).calls).toHaveLength(1);
      expect((await client.start(sid, "say still works")).status).toBe(202);
      await client.reach(sid, "stopped");
      await until(async () => textOf((await client.messages(sid)).at(-1)) === "still works", {
        what: "the next turn works",
      });
    },
  );

  it("goes to the next model of the chain", async () => {
    const { messages } = await client.play("fail-first 1 permanent\nsay from the fallback", {
      fallback: [{ provider: "scripted", model: "demo" }],
    });
    expect(messages.at(-1)).toMatchObject({ model: "demo", stop_reason: "end" });
  });
});

describe("ending a turn early", () => {
  it("aborts a streaming answer and keeps what was said (I14)", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 500 20\nsay end");
    await until(async () => (await client.state(sid)).state === "assistant_streaming", { what: "streaming" });
    const aborted = await client.post(`/v1/sessions/${sid}/abort`, {});
    expect(aborted).toMatchObject({ status: 200, body: { session_id: sid, aborted: true, state: "stopped" } });
    const messages = await client.messages(sid);
    expect(messages.at(-1)).toMatchObject({ role: "assistant", stop_reason: "aborted" });
    expect((await client.post(`/v1/sessions/${sid}/abort`, {})).body).toMatchObject({ aborted: false });
  });

  it("aborts a running tool: its result is an error and the transcript stays valid", async () => {
    const sid = newSession();
    await client.start(sid, 'call demo::slow {"ms":60000}\ncall demo::refund {}\n---\nsay done');
    await until(async () => (await client.effects(sid)).length > 0, { what: "the tool runs" });
    expect((await client.post(`/v1/sessions/${sid}/abort`, {})).body).toMatchObject({
      aborted: true,
      state: "stopped",
    });
    const messages = await client.messages(sid);
    assertValidTranscript(messages);
    expect(messages.slice(2).every((message) => message.is_error)).toBe(true);
    await until(async () => (await client.effects(sid)).some((effect) => effect.phase === "aborted"), {
      what: "the tool noticed",
    });
  });

  it("aborts a parked turn and refuses the approval afterwards", async () => {
    const sid = newSession();
    await client.start(sid, "call demo::refund {}\n---\nsay done");
    const parked = await client.reach(sid, "function_awaiting_approval");
    const [approval] = parked.awaiting_approval;
    expect((await client.post(`/v1/sessions/${sid}/abort`, {})).body).toMatchObject({ aborted: true });
    const decided = await client.post(`/v1/sessions/${sid}/approvals/${approval.function_call_id}`, {
      decision: "allow",
      args_digest: approval.args_digest,
    });
    expect(decided.status).toBe(409);
    expect(await client.effects(sid)).toEqual([]);
  });
});

describe("a message to a busy session", () => {
  it("is rejected by default and stores nothing", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 20 20");
    expect(await client.start(sid, "say no")).toMatchObject({ status: 409, body: { code: "SESSION_BUSY" } });
    await client.reach(sid, "stopped");
    expect((await client.messages(sid)).filter((message) => message.role === "user")).toHaveLength(1);
  });

  it("is queued in order", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 10 20");
    await client.start(sid, "say second", { on_busy: "queue" });
    await client.start(sid, "say third", { on_busy: "queue" });
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "third", { what: "all turns ran" });
    expect((await client.messages(sid)).map(textOf)).toEqual([
      "tokens 10 20",
      expect.any(String),
      "say second",
      "second",
      "say third",
      "third",
    ]);
  });

  it("interrupts: the partial answer stays, then the new message is answered", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 500 20");
    await until(async () => (await client.state(sid)).state === "assistant_streaming", { what: "streaming" });
    await client.start(sid, "say new", { on_busy: "interrupt" });
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "new", {
      what: "the new message is answered",
    });
    expect((await client.messages(sid))[1]).toMatchObject({ stop_reason: "aborted" });
  });

  it("steers: stands after the results of the step it interrupts, in the same turn", async () => {
    const sid = newSession();
    const { body } = await client.start(sid, 'call demo::slow {"ms":400}\n---\nsay after steering');
    await until(async () => (await client.effects(sid)).length > 0, { what: "the tool runs" });
    const steered = await client.start(sid, "please be brief", { on_busy: "steer" });
    expect(steered).toMatchObject({ status: 202, body: { turn_id: body.turn_id } });
    await client.reach(sid, "stopped");
    expect((await client.messages(sid)).map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "function_result",
      "user",
      "assistant",
    ]);
  });

  it("gets the same answer for the same message id and 409 for another body", async () => {
    const sid = newSession();
    const first = await client.start(sid, "say once", { message_id: "m1" });
    await client.reach(sid, "stopped");
    const again = await client.start(sid, "say once", { message_id: "m1" });
    expect(again.body.turn_id).toBe(first.body.turn_id);
    expect(await client.start(sid, "say twice", { message_id: "m1" })).toMatchObject({
      status: 409,
      body: { code: "MESSAGE_ID_CONFLICT" },
    });
    expect((await client.messages(sid)).filter((message) => message.role === "user")).toHaveLength(1);
  });

  it("starts exactly one of two at once (I2)", async () => {
    const sid = newSession();
    const answers = await Promise.all(["a", "b", "c", "d"].map((word) => client.start(sid, `say ${word}`)));
    expect(answers.filter((answer) => answer.status === 202)).toHaveLength(1);
    expect(answers.filter((answer) => answer.status === 409)).toHaveLength(3);
  });
});
