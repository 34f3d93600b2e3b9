// The session worker's functions on a real journal; Redis only where a function needs it.
import {
  type CommitEvent,
  type InboxBody,
  inboxDrain,
  inboxEntryId,
  inboxPeek,
  inboxPush,
  type StoredInput,
  sessionAppend,
  sessionAppendBatch,
  sessionCreate,
  sessionGet,
  sessionList,
  sessionMessages,
  sessionRebuild,
} from "@flotilla/contracts";
import { aTurnRecord, awaitingCall, until } from "@flotilla/testkit";
import type { Implementation } from "@flotilla/worker";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inboxFunctions } from "../src/functions/inbox.ts";
import { treeIndexFunctions } from "../src/functions/tree-index.ts";
import { treeReadFunctions } from "../src/functions/tree-read.ts";
import { treeWriteFunctions } from "../src/functions/tree-write.ts";
import { dump, invoke, type Replica, type Servers, startReplica, startServers, writeTurn } from "./support.ts";
import { orchestratorOf } from "./support-orchestrator.ts";

let servers: Servers;
let replica: Replica;
let functions: Implementation[];
let sessions = 0;

beforeAll(async () => {
  servers = await startServers();
  replica = await startReplica(servers);
  const { bus } = replica;
  functions = [
    ...treeWriteFunctions(bus),
    ...treeReadFunctions(bus),
    ...treeIndexFunctions({ ...replica, listWaitMs: 2_000 }),
    ...inboxFunctions(bus),
  ];
});
afterAll(async () => {
  await replica.stop();
  await servers.stop();
});

function aSession() {
  sessions += 1;
  const id = `f-${sessions}`;
  return { id, orchestrator: orchestratorOf(servers.operator, id) };
}

const user = (text: string) => ({ role: "user" as const, content: text });
const texts = async (id: string, branchLeaf?: string) =>
  (
    await invoke(functions, sessionMessages, {
      session_id: id,
      ...(branchLeaf === undefined ? {} : { branch_leaf: branchLeaf }),
    })
  ).messages.map(({ message }) =>
    message.content.map((block) => (block.type === "text" ? block.text : block.type)).join(),
  );

describe("session-tree", () => {
  it("makes fresh ids that fit into subjects", async () => {
    const [a, b] = [await invoke(functions, sessionCreate, {}), await invoke(functions, sessionCreate, {})];
    expect(a.session_id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(a.session_id).not.toBe(b.session_id);
  });

  it("answers an append only after the commit that holds it (field: kagent-dev/kagent PR#1711)", async () => {
    const { id, orchestrator } = aSession();
    let isAnswered = false;
    const answer = invoke(functions, sessionAppend, {
      session_id: id,
      message_id: "m1",
      message: user("hello"),
    }).finally(() => {
      isAnswered = true;
    });
    const input = await orchestrator.nextInput("append");
    // Taken, but kept for later: that is not applied yet.
    await orchestrator.take("run", input.seq, { pending: [{ seq: input.seq, kind: "append", id: "m1" }] });
    await until(async () => (await servers.operator.journal.tail(id))?.kind === "run", { what: "the run commit" });
    expect(isAnswered).toBe(false);
    await orchestrator.apply(input);
    expect(await answer).toEqual({ entry_id: "m1-user-0" });
    expect(await texts(id)).toEqual(["hello"]);
  });

  it("appends a chain in one commit, and the same message id again changes nothing", async () => {
    const { id, orchestrator } = aSession();
    const request = { session_id: id, message_id: "m1", messages: [user("a"), user("b")] };
    const answer = invoke(functions, sessionAppendBatch, request);
    await orchestrator.apply(await orchestrator.nextInput("append"));
    expect(await answer).toEqual({ entry_ids: ["m1-user-0", "m1-user-1"] });
    expect(await invoke(functions, sessionAppendBatch, request)).toEqual(await answer);
    expect(await texts(id)).toEqual(["a", "b"]);
    const other = { ...request, messages: [user("other")] };
    await expect(invoke(functions, sessionAppendBatch, other)).rejects.toMatchObject({ code: "MESSAGE_ID_CONFLICT" });
  });

  it("passes on why an append was rejected", async () => {
    const { id, orchestrator } = aSession();
    const answer = invoke(functions, sessionAppend, {
      session_id: id,
      message_id: "m1",
      message: user("x"),
    });
    const input = await orchestrator.nextInput("append");
    const event: CommitEvent = {
      type: "input_rejected",
      kind: "append",
      id: "m1",
      code: "NOT_FOUND",
      message: "not now",
    };
    const rejected = expect(answer).rejects.toMatchObject({ code: "NOT_FOUND", message: "not now" });
    await orchestrator.take("idle", input.seq, { events: [event] });
    await rejected;
  });

  it("refuses a parent that is not there before anything is stored", async () => {
    const { id } = aSession();
    const request = { session_id: id, message_id: "m1", parent_id: "no-such", message: user("x") };
    await expect(invoke(functions, sessionAppend, request)).rejects.toMatchObject({
      code: "NOT_FOUND",
      field: "parent_id",
    });
    expect(await servers.operator.journal.lastSequence(id)).toBe(0);
  });

  it("says that an append is stored when the deadline passes first", async () => {
    const { id, orchestrator } = aSession();
    const deadline = Date.now() + 400;
    const answer = invoke(
      functions,
      sessionAppend,
      { session_id: id, message_id: "m1", message: user("x") },
      { deadline },
    );
    await expect(answer).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await orchestrator.nextInput("append")).toMatchObject({ id: "m1" });
  });

  it("reads a branch from its leaf to the root, and refuses a leaf that is not there", async () => {
    const { id, orchestrator } = aSession();
    for (const [messageId, parent] of [
      ["m1", null],
      ["m2", null],
      ["m3", "m1-user-0"],
    ] as const) {
      const answer = invoke(functions, sessionAppend, {
        session_id: id,
        message_id: messageId,
        parent_id: parent,
        message: user(messageId),
      });
      await orchestrator.apply(await orchestrator.nextInput("append", orchestrator.journal.tail));
      await answer;
    }
    expect(await texts(id)).toEqual(["m1", "m3"]);
    expect(await texts(id, "m2-user-0")).toEqual(["m1", "m2"]);
    await expect(texts(id, "nowhere")).rejects.toMatchObject({ code: "NOT_FOUND", field: "branch_leaf" });
  });

  it("gets a session's state, its open approvals and its cost", async () => {
    const { id, orchestrator } = aSession();
    const { call } = awaitingCall("c-1", {});
    const state = aTurnRecord({
      session_id: id,
      state: "function_awaiting_approval",
      calls: [call],
      usage: { input: 10, output: 5, cost_microusd: 20 },
    });
    await orchestrator.journal.commit("idle", { state });
    const got = await invoke(functions, sessionGet, { session_id: id });
    expect(got).toMatchObject({
      session_id: id,
      state: "function_awaiting_approval",
      turn_count: 1,
      awaiting_approval: [{ function_call_id: "c-1", args_digest: "sha256:c-1" }],
      usage: { input: 10, output: 5 },
      cost_usd: 0.00002,
    });
  });

  it("knows a session from its first input on, before any commit", async () => {
    const { id } = aSession();
    const body = { session_id: id, turn_id: "t-77", workspace: "w", messages: [] };
    await servers.operator.journal.publishInput(id, "start", "m1", body);
    expect(await invoke(functions, sessionGet, { session_id: id })).toMatchObject({
      state: "provisioning",
      turn_id: "t-77",
      workspace: "w",
    });
    expect(await texts(id)).toEqual([]);
  });

  it("answers 404 for a session that the journal has never heard of", async () => {
    const missing = { code: "SESSION_NOT_FOUND", httpStatus: 404 };
    const session_id = "nobody";
    await expect(invoke(functions, sessionGet, { session_id })).rejects.toMatchObject(missing);
    await expect(invoke(functions, sessionMessages, { session_id })).rejects.toMatchObject(missing);
    await expect(invoke(functions, inboxPeek, { session_id, name: "steering" })).rejects.toMatchObject(missing);
    await expect(invoke(functions, inboxDrain, { session_id, name: "steering" })).rejects.toMatchObject(missing);
    await expect(invoke(functions, inboxPush, { session_id, name: "steering", item: "x" })).rejects.toMatchObject(
      missing,
    );
  });
});

describe("session-inbox", () => {
  const push = (session_id: string, name: "steering" | "followup", item: string, message_id: string) =>
    invoke(functions, inboxPush, { session_id, name, item, message_id });
  const peek = async (session_id: string, name: "steering" | "followup") =>
    textsOf((await invoke(functions, inboxPeek, { session_id, name })).items);

  it("I1: a push is durable when it is answered, and the same message id counts once", async () => {
    const { id, orchestrator } = aSession();
    await orchestrator.take("run", 0);
    expect(await push(id, "followup", "later", "p1")).toEqual({ ok: true, message_id: "p1" });
    await push(id, "followup", "later", "p1");
    const inputs = await servers.operator.journal.readInputs(id, 0);
    expect(inputs.map((input) => (input as StoredInput<InboxBody>).body.messages.length)).toEqual([1]);
    expect(await peek(id, "followup")).toEqual(["later"]);
    expect(await peek(id, "steering")).toEqual([]);
  });

  it("refuses a push to a session without a running turn", async () => {
    const { id, orchestrator } = aSession();
    await orchestrator.take("idle", 0);
    await expect(push(id, "steering", "x", "p1")).rejects.toMatchObject({ code: "SESSION_IDLE" });
  });

  it("peeks at what is pending and at what no commit has taken yet, in order", async () => {
    const { id, orchestrator } = aSession();
    await orchestrator.take("run", 0);
    await push(id, "followup", "one", "p1");
    const first = await orchestrator.nextInput("followup");
    await orchestrator.take("run", first.seq, { pending: [{ seq: first.seq, kind: "followup", id: "p1" }] });
    await push(id, "followup", "two", "p2");
    expect(await peek(id, "followup")).toEqual(["one", "two"]);
  });

  it("answers a drain after the commit that removed the items, with exactly those it removed", async () => {
    const { id, orchestrator } = aSession();
    await orchestrator.take("run", 0);
    for (const [n, name] of (["followup", "steering", "followup", "followup"] as const).entries())
      await push(id, name, `item ${n}`, `p${n}`);
    const inputs = await servers.operator.journal.readInputs(id, 0);
    const pending = inputs.map(({ seq, kind, id: inputId }) => ({ seq, kind, id: inputId }));
    const [p0, p1, p2] = pending;
    if (p0 === undefined || p1 === undefined || p2 === undefined) throw new Error("an input is missing");
    // The last one is not taken yet when the drain comes; the first becomes an entry in the very commit that drains.
    await orchestrator.take("run", p2.seq, { pending: [p0, p1, p2] });
    const answer = invoke(functions, inboxDrain, { session_id: id, name: "followup" });
    const drain = await orchestrator.nextInput("drain");
    const entry = {
      type: "message" as const,
      id: inboxEntryId("p0", p0.seq, 0),
      parent_id: null,
      timestamp: 1,
      message: { ...user("item 0"), content: [], timestamp: 1 },
    };
    await orchestrator.take("run", drain.seq, { pending: [p1], entries: [entry] });
    expect(textsOf((await answer).items)).toEqual(["item 2", "item 3"]);
    expect(await peek(id, "steering")).toEqual(["item 1"]);
  });

  it("drains an empty inbox without waking the session", async () => {
    const { id, orchestrator } = aSession();
    await orchestrator.take("idle", 0);
    expect(await invoke(functions, inboxDrain, { session_id: id, name: "followup" })).toEqual({ items: [] });
    expect(await servers.operator.journal.lastSequence(id)).toBe(orchestrator.journal.tail);
  });
});

describe("session-tree::list and rebuild", () => {
  it("lists a workspace page by page, newest first, with what was committed before the request", async () => {
    for (let n = 0; n < 7; n++) await writeTurn(servers.operator, `l-${n}`, 5_000 + n, "lists");
    const first = await invoke(functions, sessionList, { limit: 3, workspace: "lists" });
    expect(first).toMatchObject({
      total: 7,
      sessions: [{ session_id: "l-6" }, { session_id: "l-5" }, { session_id: "l-4" }],
    });
    const last = await invoke(functions, sessionList, { limit: 3, offset: 6, workspace: "lists" });
    expect(last.sessions).toMatchObject([{ session_id: "l-0", state: "stopped", last_message_summary: "last of l-0" }]);
    const oldest = await invoke(functions, sessionList, { limit: 1, order: "asc", workspace: "lists" });
    expect(oldest.sessions).toMatchObject([{ session_id: "l-0" }]);
  });

  it("rebuilds on demand to the same content, and repairs and removes what does not come from the journal (I7)", async () => {
    await writeTurn(servers.operator, "r-1");
    await invoke(functions, sessionList, {});
    const before = await dump(servers.redis.url);
    const redis = new Redis(servers.redis.url);
    const p = `flotilla:${await redis.hget("flotilla:projection", "current")}:`;
    await redis.hset(`${p}turn_state:r-1`, "row", "{}");
    await redis.hset(`${p}turn_state:invented`, "seq", "1", "row", "{}");
    await redis.zadd(`${p}sessions`, 1, "invented");
    const rebuilt = await invoke(functions, sessionRebuild, {});
    expect(rebuilt).toMatchObject({ rebuilt: true });
    expect(rebuilt.commits).toBeGreaterThan(rebuilt.sessions);
    expect(await dump(servers.redis.url)).toEqual(before);
    redis.disconnect();
  });

  it("answers STORE_UNAVAILABLE for lists while Redis is away, and everything else as before", async () => {
    const { id, orchestrator } = aSession();
    const answer = invoke(functions, sessionAppend, { session_id: id, message_id: "m1", message: user("kept") });
    await servers.redis.kill("SIGKILL");
    await orchestrator.apply(await orchestrator.nextInput("append"));
    expect(await answer).toEqual({ entry_id: "m1-user-0" });
    await expect(invoke(functions, sessionList, {})).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      httpStatus: 503,
    });
    expect(await texts(id)).toEqual(["kept"]);
    expect(await invoke(functions, sessionGet, { session_id: id })).toMatchObject({ entry_count: 1 });
    await servers.redis.restart();
    const listed = await until(() => invoke(functions, sessionList, { limit: 1000 }), { what: "the list is back" });
    expect(listed.sessions.map((row) => row.session_id)).toContain(id);
  });
});

function textsOf(items: readonly unknown[]): string[] {
  return (items as InboxBody["messages"]).map(({ content }) =>
    content.map((block) => (block.type === "text" ? block.text : "")).join(),
  );
}
