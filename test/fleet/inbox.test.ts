import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assertValidTranscript, Client, newSession, textOf } from "./client.ts";

let fleet: StartedFleet;
let client: Client;

beforeAll(async () => {
  // Retries beyond two seconds park the session on a timer instead of waiting inline.
  fleet = await startFleet({ env: { FLOTILLA_RETRY_BASE_MS: "2600" } });
  client = new Client(fleet.url);
});
afterAll(() => fleet.stop());

const roles = async (sid: string): Promise<string[]> => (await client.messages(sid)).map((message) => message.role);

describe("the inboxes of a running turn", () => {
  it("take a follow-up into the same turn: one agent_end, one turn id", async () => {
    const sid = newSession();
    await client.start(sid, 'call demo::slow {"ms":300}\n---\nsay first\n---\nsay second');
    await until(async () => (await client.effects(sid)).length > 0, { what: "the tool runs" });
    const pushed = await client.post(`/v1/sessions/${sid}/inbox/followup`, {
      message_id: "f1",
      messages: [{ role: "user", content: "and this" }],
    });
    expect(pushed.status).toBe(202);
    await client.reach(sid, "stopped");
    expect(await roles(sid)).toEqual(["user", "assistant", "function_result", "user", "assistant"]);
    const commits = await fleet.bus.journal.readCommits(sid, 1);
    expect(
      commits.flatMap((stored) => stored.commit.events).filter((event) => event.type === "agent_end"),
    ).toHaveLength(1);
  });

  it("store a message once, refuse another body under its id, and are closed while the session is idle", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 40 20\nsay x");
    const path = `/v1/sessions/${sid}/inbox/steering`;
    const message = { message_id: "s1", messages: [{ role: "user", content: "hurry" }] };
    expect((await client.post(path, message)).status).toBe(202);
    expect((await client.post(path, message)).status).toBe(202);
    expect((await client.post(path, { ...message, messages: [{ role: "user", content: "other" }] })).status).toBe(409);
    await client.reach(sid, "stopped");
    expect((await client.messages(sid)).filter((row) => textOf(row) === "hurry")).toHaveLength(1);
    expect(await client.post(path, { message_id: "s2", messages: [{ role: "user", content: "late" }] })).toMatchObject({
      status: 409,
      body: { code: "SESSION_IDLE" },
    });
    expect((await client.post(path, message)).status).toBe(202);
  });

  it("skip the calls of a batch that wait for a person, and revoke their approvals", async () => {
    const sid = newSession();
    await client.start(sid, "call demo::refund {}\n---\nsay done");
    const parked = await client.reach(sid, "function_awaiting_approval");
    const [approval] = parked.awaiting_approval;
    await client.start(sid, "never mind", { on_busy: "steer" });
    await client.reach(sid, "stopped");
    const messages = await client.messages(sid);
    assertValidTranscript(messages);
    expect(textOf(messages[2])).toContain("skipped");
    expect(messages.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "function_result",
      "user",
      "assistant",
    ]);
    const late = await client.post(`/v1/sessions/${sid}/approvals/${approval.function_call_id}`, {
      decision: "allow",
      args_digest: approval.args_digest,
    });
    expect(late.status).toBe(409);
    expect(await client.effects(sid)).toEqual([]);
  });
});

describe("a busy session", () => {
  it("queues behind a parked approval and runs in order after it", async () => {
    const sid = newSession();
    await client.start(sid, "call demo::refund {}\n---\nsay refunded");
    const parked = await client.reach(sid, "function_awaiting_approval");
    expect((await client.start(sid, "say no")).status).toBe(409);
    expect((await client.start(sid, "say queued", { on_busy: "queue" })).status).toBe(202);
    const [approval] = parked.awaiting_approval;
    await client.post(`/v1/sessions/${sid}/approvals/${approval.function_call_id}`, {
      decision: "allow",
      args_digest: approval.args_digest,
    });
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "queued", { what: "the queued turn ran" });
    expect((await client.messages(sid)).map(textOf)).toContain("refunded");
  });

  it("is interrupted while it waits for a person: the approval is revoked and the new message answered", async () => {
    const sid = newSession();
    await client.start(sid, "call demo::refund {}\n---\nsay refunded");
    await client.reach(sid, "function_awaiting_approval");
    await client.start(sid, "say instead", { on_busy: "interrupt" });
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "instead", {
      what: "the new message is answered",
    });
    assertValidTranscript(await client.messages(sid));
    expect(await client.effects(sid)).toEqual([]);
  });

  it("lets running tools end when it is interrupted", async () => {
    const sid = newSession();
    await client.start(sid, 'call demo::slow {"ms":400}\n---\nsay never');
    await until(async () => (await client.effects(sid)).length > 0, { what: "the tool runs" });
    await client.start(sid, "say instead", { on_busy: "interrupt" });
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "instead", {
      what: "the new message is answered",
    });
    const messages = await client.messages(sid);
    assertValidTranscript(messages);
    expect(messages[2]).toMatchObject({ role: "function_result", is_error: false });
    expect((await client.effects(sid)).map((effect) => effect.phase)).toEqual(["start", "done"]);
    expect(messages.map(textOf)).not.toContain("never");
  });

  it("keeps follow-ups of an aborted turn and runs its queued turns", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 500 20");
    await client.post(`/v1/sessions/${sid}/inbox/followup`, { messages: [{ role: "user", content: "kept" }] });
    await client.start(sid, "say queued\n---\nsay after the follow-up", { on_busy: "queue" });
    expect((await client.post(`/v1/sessions/${sid}/abort`, {})).body.aborted).toBe(true);
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "after the follow-up", {
      what: "the queued turn took the follow-up",
    });
    expect((await client.messages(sid)).map(textOf)).toContain("kept");
  });

  it("does not let the steering of an aborted turn skip the calls of the next one", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 500 20");
    await client.start(sid, "go left", { on_busy: "steer" });
    expect((await client.post(`/v1/sessions/${sid}/abort`, {})).body.aborted).toBe(true);
    await client.start(sid, "call demo::echo {}\n---\nsay after it");
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "after it", { what: "the next turn ends" });
    expect((await client.effects(sid)).filter((effect) => effect.phase === "start")).toHaveLength(1);
    expect((await client.messages(sid)).map(textOf)).toContain("go left");
  });
});

describe("a retry that has to wait", () => {
  it("parks the session on a timer and goes on by itself (I9)", async () => {
    const sid = newSession();
    await client.start(sid, "fail-first 1 rate_limited\nsay finally");
    await until(async () => (await fleet.bus.journal.tail(sid))?.kind === "idle", { what: "the session is parked" });
    expect((await client.state(sid)).state).toBe("assistant_streaming");
    await client.reach(sid, "stopped");
    expect(textOf((await client.messages(sid)).at(-1))).toBe("finally");
  });

  it("can be aborted while it waits", async () => {
    const sid = newSession();
    await client.start(sid, "fail-first 1 rate_limited\nsay finally");
    await until(async () => (await fleet.bus.journal.tail(sid))?.kind === "idle", { what: "the session is parked" });
    expect((await client.post(`/v1/sessions/${sid}/abort`, {})).body).toMatchObject({
      aborted: true,
      state: "stopped",
    });
    expect((await client.start(sid, "say next")).status).toBe(202);
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "next", { what: "the next turn works" });
  });
});

describe("a flood of messages", () => {
  it("is refused with 429 before a session holds more than a commit can", async () => {
    const sid = newSession();
    await client.start(sid, "tokens 2000 20");
    const answers: number[] = [];
    for (let lane = 0; lane < 25; lane++) {
      const batch = Array.from({ length: 40 }, (_, n) => client.start(sid, `say ${lane}-${n}`, { on_busy: "queue" }));
      answers.push(...(await Promise.all(batch)).map((answer) => answer.status));
    }
    expect(answers.filter((status) => status === 202).length).toBeGreaterThanOrEqual(850);
    expect(answers.filter((status) => status === 202).length).toBeLessThan(1_000);
    expect(answers.at(-1)).toBe(429);
  });
});

describe("sizes", () => {
  it("takes a message of 200 KB, and the commits stay small (I12)", async () => {
    const big = "x".repeat(200_000);
    const { sid, messages } = await client.play(`say ok\n${big}`);
    expect(textOf(messages[0])).toContain(big);
    const info = await fleet.bus.jsm.streams.info("TURN_STEP_0");
    expect(info.state.bytes / info.state.messages).toBeLessThan(20_000);
    expect(textOf((await client.messages(sid)).at(-1))).toBe("ok");
  });

  it("commits as many bytes at step 60 as at step 6 (I12)", async () => {
    const script = Array.from({ length: 64 }, () => 'call demo::echo {"text":"x"}').join("\n---\n");
    const { sid } = await client.play(`${script}\n---\nsay end`);
    const commits = await fleet.bus.journal.readCommits(sid, 1);
    const sizes = commits.map(
      (stored) =>
        JSON.stringify({
          ...stored.commit,
          entries: stored.commit.entries.filter((entry) => entry.message.role !== "user"),
        }).length,
    );
    const early = sizes.slice(8, 18).reduce((sum, size) => sum + size, 0);
    const late = sizes.slice(108, 118).reduce((sum, size) => sum + size, 0);
    expect(late / early).toBeLessThan(1.05);
  });
});

describe("a call with arguments over 1 MiB", () => {
  it("is answered with an error and not run", async () => {
    const { sid, messages } = await client.play(`call demo::echo {"text":"${"x".repeat(1_100_000)}"}\n---\nsay done`);
    expect(messages[2]).toMatchObject({ is_error: true, details: { error: "arguments_too_large" } });
    expect(await client.effects(sid)).toEqual([]);
  });
});

describe("the session functions", () => {
  it("append between turns and answer after the commit that holds the message", async () => {
    const { sid } = await client.play("say one");
    const appended = await client.trigger("session-tree::append", {
      session_id: sid,
      message: { role: "user", content: "a note" },
    });
    expect(appended.entry_id).toEqual(expect.any(String));
    expect((await client.messages(sid)).map(textOf)).toEqual(["say one", "one", "a note"]);
    await client.start(sid, "say two");
    await until(async () => textOf((await client.messages(sid)).at(-1)) === "two", { what: "the next turn" });
  });

  it("drain an inbox of a running turn", async () => {
    const sid = newSession();
    await client.start(sid, 'call demo::slow {"ms":800}\n---\nsay x');
    await until(async () => (await client.effects(sid)).length > 0, { what: "the tool runs" });
    await client.trigger("session-inbox::push", { name: "followup", session_id: sid, item: "later" });
    expect((await client.trigger("session-inbox::peek", { name: "followup", session_id: sid })).items).toHaveLength(1);
    const drained = await client.trigger("session-inbox::drain", { name: "followup", session_id: sid });
    expect(drained.items).toHaveLength(1);
    await client.reach(sid, "stopped");
    expect(await roles(sid)).toEqual(["user", "assistant", "function_result", "assistant"]);
  });
});
