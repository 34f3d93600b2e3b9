// Inputs that no door would store: each is taken, visibly refused, and holds nothing up.
import { type InputKind, subjects } from "@flotilla/contracts";
import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { assertValidTranscript, Client, type Json, newSession, textOf } from "./client.ts";
import { puppets, reply } from "./puppet.ts";

const { model, never, safe, definitions } = puppets();
let fleet: StartedFleet;
let client: Client;
let sid: string;

beforeAll(async () => {
  const workers = ["harness", "turn-orchestrator", "session", "approval-gate"];
  fleet = await startFleet({ workers, definitions, env: { LOG_LEVEL: "silent" } });
  client = new Client(fleet.url);
  safe.auto = (call) => call.answer("ok");
});
afterAll(() => fleet.stop());
beforeEach(() => {
  sid = newSession();
  model.auto = null;
});

const start = (text: string, fields: Json = {}) =>
  client.start(sid, text, { provider: "puppet", model: "puppet", ...fields });
const texts = async () => (await client.messages(sid)).map(textOf);
const ended = (last: string) => until(async () => (await texts()).at(-1) === last, { what: `it ends with ${last}` });
const raw = (kind: string, id: string, body: string) =>
  fleet.bus.js.publish(subjects.input(0, sid, kind as InputKind, id), body);

describe("an input that cannot be read", () => {
  it.each([
    ["no JSON", "start", "{"],
    ["no object", "start", "null"],
    ["no messages", "start", JSON.stringify({ session_id: "s", turn_id: "t-1", message_id: "m", request: {} })],
    ["a lost body", "start", JSON.stringify({ $blob: "0".repeat(64), bytes: 1 })],
    ["no messages", "followup", "{}"],
    ["no messages", "append", JSON.stringify({ parent_id: null })],
    ["no decision", "approval", "{}"],
    ["no object", "abort", "1"],
    ["a kind of another version", "telepathy", "{}"],
  ])("(%s in %s) is rejected, and the session goes on", async (_, kind, body) => {
    model.auto = (call) => call.answer(reply("fine"));
    await raw(kind, "bad", body);
    const rejected = async () =>
      (await fleet.bus.journal.readCommits(sid, 1))
        .flatMap(({ commit }) => commit.events)
        .filter((event) => event.type === "input_rejected");
    await until(async () => (await rejected()).length > 0, { what: "it is rejected" });
    expect(await rejected()).toEqual([expect.objectContaining({ kind, id: "bad", code: "INVALID_INPUT" })]);
    await until(async () => (await fleet.bus.journal.tail(sid))?.kind === "idle", { what: "the session is idle" });
    expect((await start("go")).status).toBe(202);
    await ended("fine");
  });
});

describe("ids", () => {
  it("that are used again for another kind of input lose nothing and replay nothing (I6)", async () => {
    await start("one", { message_id: "same" });
    const first = await model.next(sid);
    await client.post(`/v1/sessions/${sid}/inbox/followup`, { message_id: "same", messages: ["two"].map(user) });
    await client.post(`/v1/sessions/${sid}/inbox/steering`, { message_id: "same", messages: ["three"].map(user) });
    first.answer(reply("to one"));
    (await model.next(sid)).answer(reply("to three"));
    (await model.next(sid)).answer(reply("to two"));
    await ended("to two");
    expect(await texts()).toEqual(["one", "to one", "three", "to three", "two", "to two"]);
    // A message for a turn that had ended: a turn of its own, whose model is really called.
    await fleet.bus.journal.publishInput(sid, "steering", "late", { messages: [message("four")] });
    (await model.next(sid)).answer(reply("to four"));
    await ended("to four");
    await start("five", { message_id: "late" });
    (await model.next(sid)).answer(reply("to five"));
    await ended("to five");
    expect((await texts()).slice(6)).toEqual(["four", "to four", "five", "to five"]);
  });

  it("that an append and a start share keep both messages, or refuse the append", async () => {
    const append = (id: string, text: string) =>
      client.post("/v1/trigger", {
        function_id: "session-tree::append",
        payload: { session_id: sid, message_id: id, message: user(text) },
      });
    model.auto = (call) => call.answer(reply("fine"));
    await append("a", "a note");
    await start("go", { message_id: "a" });
    await ended("fine");
    expect(await texts()).toEqual(["a note", "go", "fine"]);
    await start("again", { message_id: "b" });
    await until(async () => (await texts()).length === 5, { what: "the second turn has ended" });
    expect((await append("b", "another")).body).toMatchObject({ status_code: 409 });
    expect(await texts()).toEqual(["a note", "go", "fine", "again", "fine"]);
  });

  it("may be as long as the grammar allows", async () => {
    const long = "x".repeat(64);
    sid = newSession().padEnd(64, "s");
    await start("go", { message_id: long });
    (await model.next(sid)).answer(reply([["puppet::safe"]]));
    (await model.next(sid)).answer(reply("done"));
    await ended("done");
  });

  const user = (content: string) => ({ role: "user", content });
  const message = (text: string) => ({
    role: "user" as const,
    content: [{ type: "text" as const, text }],
    timestamp: 1,
  });
});

describe("what a model asks for", () => {
  it("may look like a reference to a stored body without being read as one", async () => {
    const lookalike = { $blob: "deadbeef", bytes: 1 };
    await start("go");
    (await model.next(sid)).answer(reply([["puppet::never", lookalike]]));
    const call = await never.next(sid);
    expect(call.request).toEqual(lookalike);
    call.answer(lookalike);
    (await model.next(sid)).answer(reply("done"));
    await ended("done");
    expect((await client.messages(sid))[2]?.details).toEqual(lookalike);
  });

  it("may be hundreds of calls at once", async () => {
    await start("go");
    const calls = Array.from({ length: 400 }, (_, index): [string, unknown] => ["puppet::safe", { index }]);
    (await model.next(sid)).answer(reply([...calls, ["agent_trigger", {}], ["no::such", {}], ["puppet::safe", [1]]]));
    (await model.next(sid, 25_000)).answer(reply("done"));
    await ended("done");
    const messages = await client.messages(sid);
    assertValidTranscript(messages);
    expect(messages.filter((row) => row.role === "function_result")).toHaveLength(403);
    expect(messages.slice(-4, -1).every((row) => row.is_error)).toBe(true);
  }, 40_000);
});

describe("what a provider says when it fails", () => {
  it("may be a whole page: the turn ends as any other failed call", async () => {
    const page = "<p>no</p>".repeat(60_000);
    await start("go");
    (await model.next(sid)).answer(
      reply("", { stop_reason: "error", error_kind: "permanent", error_message: page, content: [] }),
    );
    const state = await client.reach(sid, "stopped");
    expect(state.error.message.length).toBeLessThan(5_000);
    expect((await client.messages(sid)).at(-1)).toMatchObject({ stop_reason: "error", error_message: page });
  });
});

describe("a long wait", () => {
  it("takes thousands of messages that come meanwhile", async () => {
    await start("go");
    const call = await model.next(sid);
    const text = [{ type: "text" as const, text: "x" }];
    for (let batch = 0; batch < 30; batch++) {
      await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          fleet.bus.journal.publishInput(sid, "followup", `${batch}-${index}-${"i".repeat(40)}`, {
            messages: [{ role: "user" as const, content: text, timestamp: 1 }],
          }),
        ),
      );
    }
    call.answer(reply("first"));
    (await model.next(sid, 25_000)).answer(reply("all of them"));
    await ended("all of them");
    expect((await texts()).filter((one) => one === "x")).toHaveLength(3_000);
  }, 60_000);
});
