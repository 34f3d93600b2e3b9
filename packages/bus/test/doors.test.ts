// The doors against a journal that stands at one exact moment of a session.
import { type Commit, type StartBody, turnIdOf } from "@flotilla/contracts";
import { aCommit, aTurnRecord, startNats } from "@flotilla/testkit";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { acceptAbort, acceptInbox, acceptStart, type Bus } from "../src/index.ts";
import { busOf, serve } from "./support.ts";

const stack = new AsyncDisposableStack();
let bus: Bus;
let sid: string;
let seqNo = 0;
let count = 0;

beforeAll(async () => {
  const nats = stack.use(await startNats());
  bus = await busOf(stack, nats, "turn-orchestrator");
  // Only its being there is asked for.
  await serve(await busOf(stack, nats, "provider-scripted"), "provider::p::stream", () => null);
  await bus.registry.changed(2_000);
});
afterAll(() => stack.disposeAsync());
beforeEach(() => {
  sid = `s-${count++}`;
  seqNo = 0;
});

const defaults = { provider: "p", model: "m", approvalTtlMs: 1_000 };
const turn = (over: Partial<NonNullable<Commit["state"]>>) => aTurnRecord({ session_id: sid, ...over });

async function commit(kind: "step" | "run" | "idle", over: Partial<Commit> = {}): Promise<number> {
  const seq = (await bus.journal.tail(sid, { fresh: true }))?.seq ?? 0;
  const next = aCommit({ session_id: sid, seq_no: ++seqNo, ...over });
  const stored = await bus.journal.commit(kind, next, { on: "commits", seq });
  if (stored.kind === "stale") throw new Error("the test's commit is stale");
  return stored.seq;
}

function startInput(messageId: string): Promise<unknown> {
  const body = { session_id: sid, message_id: messageId, turn_id: turnIdOf(sid, messageId), on_busy: "queue" };
  return bus.journal.publishInput(sid, "start", messageId, body as StartBody);
}

async function abortBody(): Promise<unknown> {
  return (await bus.journal.readInputs(sid, 0)).find((input) => input.kind === "abort")?.body;
}

describe("acceptAbort", () => {
  it("means the turn that is about to open, not the ended one that the wake's anchor still names", async () => {
    await commit("idle", { turn_id: "t-old", state: turn({ turn_id: "t-old" }) });
    await startInput("m2");
    await commit("step", { turn_id: "t-old", state: turn({ turn_id: "t-old" }) });
    await expect(acceptAbort(bus, { session_id: sid }, 50)).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await abortBody()).toMatchObject({ turn_id: null });
  });

  it("names the open turn, so that it cannot reach a later one", async () => {
    await commit("run", { turn_id: "t-1", state: turn({ turn_id: "t-1", state: "assistant_streaming" }) });
    await expect(acceptAbort(bus, { session_id: sid }, 50)).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await abortBody()).toMatchObject({ turn_id: "t-1" });
  });
});

describe("a message to a session whose next turn is being opened", () => {
  it.each(["steering", "followup"] as const)("is told the turn that it reaches (%s)", async (kind) => {
    await commit("idle", { turn_id: "t-old", state: turn({ turn_id: "t-old" }) });
    await startInput("m2");
    await commit("step", { turn_id: "t-old", state: turn({ turn_id: "t-old" }) });
    const answer = await acceptInbox(bus, kind, { session_id: sid, messages: ["hurry"] });
    expect(answer.turn_id).toBe(turnIdOf(sid, "m2"));
  });
});

describe("a session of a workspace", () => {
  it("is known to its own workspace while its first turn is being opened", async () => {
    await startInput("m1");
    await commit("step", { workspace: "default", state: null, turn_id: "" });
    const inbox = { session_id: sid, workspace: "acme", message_id: "x", messages: ["hurry"] };
    expect(await acceptInbox(bus, "steering", inbox)).toMatchObject({ accepted: true });
  });

  it("is not found by a start that names no workspace, whatever it does when busy", async () => {
    await commit("run", { workspace: "acme", state: turn({ workspace: "acme", state: "assistant_streaming" }) });
    for (const on_busy of ["reject", "queue", "steer", "interrupt"] as const) {
      await expect(acceptStart(bus, { session_id: sid, text: "x", on_busy }, { defaults })).rejects.toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
    }
  });
});

describe("an idle session that something late has woken", () => {
  it("is not busy: the start waits for it to settle", async () => {
    await commit("idle", { state: turn({}) });
    await bus.journal.publishInput(sid, "timer", "approval-x", { name: "approval-x", due_at: 1 });
    await commit("step", { state: turn({}) });
    const accepted = acceptStart(bus, { session_id: sid, text: "x" }, { defaults });
    await new Promise((resolve) => setTimeout(resolve, 60));
    await commit("idle", { state: turn({}), cursor: await bus.journal.lastSequence(sid) });
    expect(await accepted).toMatchObject({ accepted: true });
  });
});
