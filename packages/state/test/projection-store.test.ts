// The guarded writes, generations and readers against a real Redis.
import type { StoredCommit } from "@flotilla/contracts";
import { aCommit, aTurnRecord, awaitingCall, type StartedRedis, startRedis, until, userEntry } from "@flotilla/testkit";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectState, keys, projectionOf, type State } from "../src/index.ts";
import { dump, silent } from "./support.ts";

const journal = "test-journal";
let redis: StartedRedis;
let state: State;
let raw: Redis;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  raw = new Redis(redis.url);
  await raw.flushall();
  state = connectState({ url: redis.url, logger: silent });
  await until(() => state.connected, { what: "redis is connected" });
});
afterEach(async () => {
  raw.disconnect();
  await state.close();
});

async function build(store = state): Promise<void> {
  const generation = keys.newGeneration();
  expect(await store.projection.lock("t", 5_000)).toBe(true);
  const begun = await store.projection.begin("t", generation, { dropCurrent: true });
  if (begun === null) throw new Error("the generation was not begun");
  const { runId } = begun;
  expect(await store.projection.finish({ token: "t", generation, runId, journal, through: new Map() })).toBe(true);
  await store.projection.sweep();
  await store.projection.unlock("t");
}

/** Two sessions; one asks for two approvals, of which one is decided, in five commits. */
function history(): StoredCommit[] {
  const a = awaitingCall("c-1", { order: 1 }, 10);
  const b = awaitingCall("c-2", { order: 2 }, 10);
  const parked = (calls: (typeof a.call)[], at: number) =>
    aTurnRecord({ session_id: "s-1", state: "function_awaiting_approval", calls, updated_at_ms: at, entry_count: 2 });
  return [
    { seq: 1, kind: "step", commit: aCommit({ session_id: "s-1", state: null, at: 1 }) },
    {
      seq: 2,
      kind: "run",
      commit: aCommit({ session_id: "s-1", at: 2, entries: [userEntry("e1", "hello"), userEntry("e2", "you")] }),
    },
    {
      seq: 4,
      kind: "idle",
      commit: aCommit({ session_id: "s-1", at: 4, state: parked([a.call, b.call], 4), events: [a.event, b.event] }),
    },
    { seq: 6, kind: "run", commit: aCommit({ session_id: "s-1", at: 6, state: parked([b.call], 6) }) },
    {
      seq: 7,
      kind: "idle",
      commit: aCommit({ session_id: "s-2", workspace: "w2", at: 5, entries: [userEntry("e9", "other")] }),
    },
  ];
}

async function applyAll(commits: readonly StoredCommit[]): Promise<void> {
  for (const commit of commits) await state.projection.apply(projectionOf(commit));
}

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length <= 1) return yield [...items];
  for (const [index, item] of items.entries()) {
    for (const rest of permutations(items.toSpliced(index, 1))) yield [item, ...rest];
  }
}

describe("projection in Redis", () => {
  it("I7: every order and repetition of the same commits leaves the same content", async () => {
    await build();
    await applyAll(history());
    const expected = await dump(redis.url);
    expect(Object.keys(expected)).toEqual([
      "approvals",
      "entries:s-1",
      "entries:s-2",
      "sessions",
      "sessions:default",
      "sessions:w2",
      "turn_state:s-1",
      "turn_state:s-2",
    ]);
    for (const order of permutations(history())) {
      await build();
      await applyAll([...order, ...order.slice(0, 3)]);
      expect(await dump(redis.url), order.map(({ seq }) => seq).join(" ")).toEqual(expected);
    }
  });

  it("I7: an older commit never replaces a newer one", async () => {
    await build();
    const [first, , parked] = history();
    if (first === undefined || parked === undefined) throw new Error("the history is too short");
    expect(await state.projection.apply(projectionOf(parked))).toBe("applied");
    expect(await state.projection.apply(projectionOf(first))).toBe("older");
    expect(await state.getTurnState("s-1")).toMatchObject({ state: "function_awaiting_approval", created_at: 1 });
  });

  it("lists the calls that still wait, with their arguments untouched", async () => {
    await build();
    await applyAll(history());
    expect(await state.listApprovals()).toEqual([
      {
        session_id: "s-1",
        function_call_id: "c-2",
        function_id: "demo::refund",
        args: { order: 2 },
        args_digest: "sha256:c-2",
        created_at: 10,
        expires_at: 60_010,
      },
    ]);
  });

  it("pages sessions by their last change in both orders and per workspace", async () => {
    await build();
    for (let n = 0; n < 25; n++) {
      const commit = aCommit({ session_id: `s-${n}`, at: 1_000 + n, workspace: n % 5 === 0 ? "five" : "default" });
      await state.projection.apply(projectionOf({ seq: n + 1, kind: "idle", commit }));
    }
    const ids = async (query: Parameters<State["listSessions"]>[0]) =>
      (await state.listSessions(query)).sessions.map((row) => row.session_id);
    expect(await ids({ limit: 3, offset: 0, order: "desc" })).toEqual(["s-24", "s-23", "s-22"]);
    expect(await ids({ limit: 3, offset: 23, order: "desc" })).toEqual(["s-1", "s-0"]);
    expect(await ids({ limit: 2, offset: 1, order: "asc" })).toEqual(["s-1", "s-2"]);
    expect(await ids({ limit: 10, offset: 0, order: "desc", workspace: "five" })).toEqual([
      "s-20",
      "s-15",
      "s-10",
      "s-5",
      "s-0",
    ]);
    expect((await state.listSessions({ limit: 1, offset: 99, order: "desc" })).total).toBe(25);
  });

  it("lists entries in journal order with the summary of the newest", async () => {
    await build();
    await applyAll(history());
    expect((await state.listEntries("s-1")).map((entry) => entry.text)).toEqual(["hello", "you"]);
    const page = await state.listSessions({ limit: 1, offset: 1, order: "desc" });
    expect(page.sessions).toMatchObject([{ session_id: "s-2", last_message_summary: "other", workspace: "w2" }]);
  });

  it("I7: FLUSHALL is noticed by the next write, and readers say that the projection is being rebuilt", async () => {
    await build();
    await raw.flushall();
    const [first] = history();
    if (first === undefined) throw new Error("the history is empty");
    expect(await state.projection.apply(projectionOf(first))).toBe("lost");
    expect(await raw.dbsize()).toBe(0);
    expect((await state.projection.inspect(journal)).condition).toBe("lost");
    await expect(state.listSessions({ limit: 1, offset: 0, order: "desc" })).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
    await expect(state.listApprovals()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  it("serves the old generation while the next is built, and writes live commits to both", async () => {
    await build();
    const [first, second] = history();
    if (first === undefined || second === undefined) throw new Error("the history is too short");
    await state.projection.apply(projectionOf(first));
    const generation = keys.newGeneration();
    await state.projection.lock("t", 5_000);
    const begun = await state.projection.begin("t", generation, { dropCurrent: false });
    await state.projection.apply(projectionOf(second));
    expect((await state.listSessions({ limit: 9, offset: 0, order: "desc" })).total).toBe(1);
    const done = { token: "t", generation, runId: begun?.runId ?? "", journal, through: new Map([[0, 2]]) };
    expect(await state.projection.finish(done)).toBe(true);
    expect(await state.projection.sweep()).toBeGreaterThan(0);
    expect((await state.listEntries("s-1")).map((entry) => entry.id)).toEqual(["e1", "e2"]);
    expect(await state.projection.inspect(journal)).toMatchObject({ condition: "complete", building: null });
  });

  it("refuses to finish a generation that was flushed, superseded or begun in another Redis process", async () => {
    const generation = keys.newGeneration();
    await state.projection.lock("t", 5_000);
    const begun = await state.projection.begin("t", generation, { dropCurrent: true });
    const runId = begun?.runId ?? "";
    const finish = (over: object) =>
      state.projection.finish({ token: "t", generation, runId, journal, through: new Map(), ...over });
    expect(await finish({ runId: "another" })).toBe(false);
    expect(await finish({ generation: keys.newGeneration() })).toBe(false);
    expect(await finish({ token: "somebody" })).toBe(false);
    await raw.flushall();
    expect(await finish({})).toBe(false);
  });

  it("moves a checkpoint only forward, and only in the Redis process in which it was confirmed", async () => {
    await build();
    expect(await state.projection.checkpoint(new Map([[0, 9]]))).toBe(true);
    expect(await state.projection.checkpoint(new Map([[0, 4]]))).toBe(true);
    expect((await state.projection.inspect(journal)).through.get(0)).toBe(9);
    await raw.hset(keys.projection, "run_id", "the-process-before");
    const status = await state.projection.inspect(journal);
    expect(status.condition).toBe("restarted");
    expect(await state.projection.checkpoint(new Map([[0, 12]]))).toBe(false);
    expect(await state.projection.confirm(status.runId, new Map([[0, 12]]))).toBe(true);
    expect(await state.projection.inspect(journal)).toMatchObject({ condition: "complete" });
  });

  it("does not take a projection of another journal for its own", async () => {
    await build();
    expect((await state.projection.inspect("another-journal")).condition).toBe("foreign");
  });

  it("gives the repair lock to one at a time", async () => {
    expect(await state.projection.lock("a", 5_000)).toBe(true);
    expect(await state.projection.lock("b", 5_000)).toBe(false);
    await state.projection.unlock("b");
    expect(await state.projection.renew("b", 5_000)).toBe(false);
    expect(await state.projection.renew("a", 5_000)).toBe(true);
    await state.projection.unlock("a");
    expect(await state.projection.lock("b", 5_000)).toBe(true);
  });

  it("runs its scripts on a Redis that has forgotten them", async () => {
    await build();
    await raw.script("FLUSH");
    await applyAll(history());
    expect((await state.listSessions({ limit: 9, offset: 0, order: "desc" })).total).toBe(2);
  });
});
