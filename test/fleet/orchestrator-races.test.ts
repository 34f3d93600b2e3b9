// What may happen between any two moments of a turn, one race per test: every call is answered by the test itself.
import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { assertValidTranscript, Client, type Json, newSession, textOf } from "./client.ts";
import { puppets, reply } from "./puppet.ts";

const workers = ["harness", "turn-orchestrator", "session", "approval-gate"];
const { model, policy, models, never, safe, definitions } = puppets();
let fleet: StartedFleet;
let client: Client;
let sid: string;

beforeAll(async () => {
  fleet = await startFleet({ workers, definitions, env: { FLOTILLA_RETRY_BASE_MS: "2600", LOG_LEVEL: "error" } });
  client = new Client(fleet.url);
});
afterAll(() => fleet.stop());
beforeEach(() => {
  sid = newSession();
  policy.auto = (call) => call.answer({ decision: "allow", rule_id: "puppet" });
  models.auto = (call) => call.fail("WORKER_UNAVAILABLE");
  model.auto = null;
  never.auto = null;
  safe.auto = null;
});

const start = (text: string, fields: Json = {}) =>
  client.start(sid, text, { provider: "puppet", model: "puppet", ...fields });
const abort = () => client.post(`/v1/sessions/${sid}/abort`, {});
const inputs = () => fleet.bus.journal.readInputs(sid, 0);
const stored = (kind: string) =>
  until(async () => (await inputs()).some((input) => input.kind === kind), { what: `an input ${kind} is stored` });
const texts = async () => (await client.messages(sid)).map(textOf);
const parked = () => until(async () => (await fleet.bus.journal.tail(sid))?.kind === "idle", { what: "it is parked" });
const events = async () =>
  (await fleet.bus.journal.readCommits(sid, 1)).flatMap(({ commit }) => commit.events as unknown as Json[]);

describe("an abort", () => {
  it("that comes while policy is asked starts none of the calls (I14)", async () => {
    policy.auto = null;
    await start("go");
    (await model.next(sid)).answer(reply([["puppet::never"], ["puppet::safe"]]));
    const asked = [await policy.next(sid), await policy.next(sid)];
    const aborted = abort();
    await stored("abort");
    for (const call of asked) call.answer({ decision: "allow", rule_id: "puppet" });
    expect((await aborted).body).toMatchObject({ aborted: true, state: "stopped" });
    expect(never.ofSession(sid)).toEqual([]);
    expect(safe.ofSession(sid)).toEqual([]);
    const messages = await client.messages(sid);
    assertValidTranscript(messages);
    expect(textOf(messages[2])).toContain("had not started");
    expect(textOf(messages[3])).toContain("had not started");
  });

  it("right after the start of a later turn ends that turn, not the one before it", async () => {
    model.auto = (call) => call.answer(reply("one"));
    await start("first");
    await client.reach(sid, "stopped");
    model.auto = null;
    // At once, while the session's newest commit may still be the anchor of the wake.
    for (let round = 0; round < 15; round++) {
      const [accepted, aborted] = [await start(`round ${round}`), await abort()];
      expect(accepted.status).toBe(202);
      expect(aborted.body).toMatchObject({ aborted: true, state: "stopped" });
    }
  });

  it("in the same taking as an approval runs nothing, and every call gets one decision and one result (I5)", async () => {
    policy.auto = (call) => call.answer({ decision: "needs_approval" });
    await start("go");
    (await model.next(sid)).answer(reply([["puppet::never"], ["puppet::safe"]]));
    const { awaiting_approval: waiting } = await client.reach(sid, "function_awaiting_approval");
    policy.auto = null;
    const before = policy.calls.length;
    const decide = (index: number) =>
      client.post(`/v1/sessions/${sid}/approvals/${waiting[index].function_call_id}`, {
        decision: "allow",
        args_digest: waiting[index].args_digest,
      });
    await decide(0);
    const release = await until(() => policy.calls[before], { what: "policy is asked at release" });
    await decide(1);
    const aborted = abort();
    await stored("abort");
    policy.auto = (call) => call.answer({ decision: "allow", rule_id: "puppet" });
    release.answer({ decision: "allow", rule_id: "puppet" });
    expect((await aborted).body).toMatchObject({ aborted: true });
    expect([...never.ofSession(sid), ...safe.ofSession(sid)]).toEqual([]);
    assertValidTranscript(await client.messages(sid));
    const decided = (await events()).filter((event) => event.type === "approval_decided");
    expect(decided.map((event) => event.function_call_id).sort()).toEqual(
      waiting.map((call: Json) => call.function_call_id).sort(),
    );
  });

  it("of a parked retry does not complete the message that was given up, nor count it twice", async () => {
    await start("go");
    (await model.next(sid)).answer({
      ...reply("half an ans", { stop_reason: "error", error_kind: "transient", error_message: "cut" }),
      streamed: true,
    });
    await parked();
    expect((await abort()).body).toMatchObject({ aborted: true, state: "stopped" });
    const all = await events();
    const given = all.filter((event) => event.type === "message_aborted").map((event) => event.message_id);
    const complete = all.filter((event) => event.type === "message_complete").map((event) => event.message_id);
    expect(given).toHaveLength(1);
    expect(complete).toHaveLength(1);
    expect(complete).not.toEqual(given);
    expect((await client.messages(sid)).at(-1)).toMatchObject({ role: "assistant", stop_reason: "aborted" });
    const commits = await fleet.bus.journal.readCommits(sid, 1);
    const outcomes = commits.flatMap(({ commit }) => commit.ledger).filter((record) => record.kind === "outcome");
    expect(new Set(outcomes.map((record) => record.key)).size).toBe(outcomes.length);
    expect((await client.state(sid)).usage).toMatchObject({ input: 10, output: 5 });
  });
});

describe("an interrupt", () => {
  it("is answered before the turns that wait in the queue, and cuts none of them", async () => {
    await start("first");
    await model.next(sid);
    await start("queued", { on_busy: "queue" });
    await start("now", { on_busy: "interrupt" });
    (await model.next(sid)).answer(reply("answer to now"));
    (await model.next(sid)).answer(reply([["puppet::safe"]]));
    (await safe.next(sid)).answer("ok");
    (await model.next(sid)).answer(reply("answer to queued"));
    await until(async () => (await texts()).at(-1) === "answer to queued", { what: "the queued turn has its answer" });
    const order = await texts();
    expect(order.indexOf("answer to now")).toBeLessThan(order.indexOf("queued"));
  });
});

describe("a message at the very commit that stops", () => {
  it.each(["steering", "followup"])("continues the same turn: one agent_end (%s)", async (kind) => {
    await start("go");
    const call = await model.next(sid);
    models.auto = null;
    const before = models.calls.length;
    call.answer(reply("the end"));
    // The answer is being priced; nothing is read between this and the commit that ends the turn.
    const pricing = await until(() => models.calls[before], { what: "the answer is priced" });
    const pushed = await client.post(`/v1/sessions/${sid}/inbox/${kind}`, {
      messages: [{ role: "user", content: "one more thing" }],
    });
    expect(pushed.status).toBe(202);
    models.auto = (again) => again.fail("WORKER_UNAVAILABLE");
    pricing.fail("WORKER_UNAVAILABLE");
    (await model.next(sid)).answer(reply("that too"));
    await client.reach(sid, "stopped");
    expect(await texts()).toEqual(["go", "the end", "one more thing", "that too"]);
    expect((await events()).filter((event) => event.type === "agent_end")).toHaveLength(1);
  });
});

describe("the state of an event", () => {
  it("is what was before it and what is after it", async () => {
    await start("go");
    (await model.next(sid)).answer(
      reply("", { stop_reason: "error", error_kind: "permanent", error_message: "no such luck" }),
    );
    await client.reach(sid, "stopped");
    const changes = (await events()).filter((event) => event.type === "turn_state_changed");
    for (const [index, change] of changes.entries()) {
      if (index === 0) continue;
      expect(change.old_value.state).toBe(changes[index - 1]?.new_value.state);
    }
    expect(changes.at(-1)).toMatchObject({ new_value: { error: { message: "no such luck" } } });
    expect(changes.at(-1)?.old_value.error).toBeUndefined();
  });
});
