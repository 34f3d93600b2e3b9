// What waits for a human: from the journal for one session, from the projection for all; and a lost acknowledgement.
import { type Bus, connectBus } from "@flotilla/bus";
import { type ApprovalBody, randomId, type StoredCommit } from "@flotilla/contracts";
import { connectState, keys, projectionOf, type State } from "@flotilla/state";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, type StartedRedis, startNats, startRedis, until } from "@flotilla/testkit";
import type { WorkersHandle } from "@flotilla/worker";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createJournalDecisions } from "../src/adapters/journal-decisions.ts";
import { aTurn, digestOf } from "./builders.ts";
import { codeOf, commit, connectOperator, decide, get, list, park, startGate } from "./support.ts";

const logger = createLogger({ level: "silent", name: "test" });
let nats: StartedNats;
let bus: Bus;
let sid: string;
let gate: WorkersHandle | undefined;

beforeAll(async () => {
  nats = await startNats();
  bus = await connectOperator(nats);
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});
beforeEach(() => {
  sid = `s-${randomId()}`;
});
afterEach(async () => {
  await gate?.stop();
  gate = undefined;
});

describe("one session", () => {
  it("lists what waits with the arguments that will run, in the model's order", async () => {
    gate = await startGate(nats);
    const expiresAt = Date.now() + 60_000;
    const calls = [
      { id: "c0", status: "running" as const },
      { id: "c1", args: { order: "A1" }, expiresAt, reason: "moves money" },
      { id: "c2", args: { order: "A2" }, expiresAt },
    ];
    await park(bus, sid, calls, "run");
    expect(await list(bus, sid)).toEqual([
      {
        session_id: sid,
        function_call_id: "c1",
        function_id: "demo::refund",
        args: { order: "A1" },
        args_digest: digestOf({ id: "c1", args: { order: "A1" } }),
        reason: "moves money",
        created_at: 1_000,
        expires_at: expiresAt,
      },
      expect.objectContaining({ function_call_id: "c2", args: { order: "A2" } }),
    ]);
    expect(await get(bus, sid, "c2")).toMatchObject({ function_call_id: "c2", args: { order: "A2" } });
  });

  it("finds arguments of any size, far back in the journal", async () => {
    gate = await startGate(nats);
    const call = { id: "c1", args: { text: "long ".repeat(20_000) } };
    await park(bus, sid, [call], "run");
    const other = `${sid}-other`;
    for (let n = 0; n < 300; n++) await bus.journal.publishInput(other, "wake", `w${n}`, {});
    await commit(bus, { session_id: sid, state: aTurn(sid, [call]) }, "idle");
    expect((await get(bus, sid, "c1")).args).toEqual(call.args);
    expect((await list(bus, sid)).map(({ args }) => args)).toEqual([call.args]);
  });

  it("lists pending ones only: none decided, expired, or of a turn that ended", async () => {
    gate = await startGate(nats);
    const calls = [{ id: "c1" }, { id: "c2", expiresAt: Date.now() - 1 }, { id: "c3" }];
    await park(bus, sid, calls);
    await decide(bus, sid, { id: "c1" });
    expect((await list(bus, sid)).map((approval) => approval.function_call_id)).toEqual(["c3"]);
    expect(await codeOf(get(bus, sid, "c1"))).toBe("APPROVAL_DECIDED");
    expect(await codeOf(get(bus, sid, "c2"))).toBe("APPROVAL_EXPIRED");
    expect(await codeOf(get(bus, sid, "c9"))).toBe("APPROVAL_NOT_FOUND");
    await commit(bus, { session_id: sid, state: aTurn(sid, [], "stopped") }, "idle");
    expect(await list(bus, sid)).toEqual([]);
    expect(await codeOf(list(bus, `${sid}-no`))).toBe("SESSION_NOT_FOUND");
    expect(await codeOf(get(bus, `${sid}-no`, "c1"))).toBe("SESSION_NOT_FOUND");
  });
});

describe("all sessions", () => {
  let redis: StartedRedis;
  let state: State;
  beforeAll(async () => {
    redis = await startRedis();
    state = connectState({ url: redis.url, logger });
    await until(() => state.connected, { what: "redis is connected" });
  });
  afterAll(async () => {
    await state.close();
    await redis.stop();
  });

  /** As the projector does after a rebuild. */
  async function project(commits: readonly StoredCommit[]): Promise<void> {
    const token = randomId();
    const generation = keys.newGeneration();
    await state.projection.lock(token, 10_000);
    const build = await state.projection.begin(token, generation, { dropCurrent: true });
    for (const stored of commits) await state.projection.apply(projectionOf(stored), generation);
    const runId = build?.runId ?? "";
    await state.projection.finish({ token, generation, runId, journal: "test", through: new Map() });
    await state.projection.unlock(token);
  }

  it("lists the pending ones of every session from the projection, without those that were decided since", async () => {
    gate = await startGate(nats, { REDIS_URL: redis.url });
    const two = `${sid}-2`;
    const commits = [await park(bus, sid, [{ id: "c1" }, { id: "c2" }]), await park(bus, two, [{ id: "c1" }])];
    await project(commits);
    const found = async (): Promise<string[]> =>
      (await list(bus)).map((row) => `${row.session_id}/${row.function_call_id}`).sort();
    const ready = () => found().catch(() => null);
    expect(await until(ready, { what: "the gate reads redis" })).toEqual(
      [`${sid}/c1`, `${sid}/c2`, `${two}/c1`].sort(),
    );
    await decide(bus, sid, { id: "c1" });
    expect(await found()).toEqual([`${sid}/c2`, `${two}/c1`].sort());
  });

  it("starts and decides without Redis, degraded, refuses only this list, and recovers when Redis comes", async () => {
    await redis.kill();
    gate = await startGate(nats, { REDIS_URL: redis.url });
    await park(bus, sid, [{ id: "c1" }, { id: "c2" }]);
    expect((await gate.readiness()).workers[0]).toMatchObject({
      ready: true,
      degraded: [expect.stringContaining("redis is not reachable")],
    });
    expect(await codeOf(list(bus))).toBe("STORE_UNAVAILABLE");
    expect(await list(bus, sid)).toHaveLength(2);
    expect(await decide(bus, sid, { id: "c1" })).toEqual({ ok: true });
    await redis.restart();
    const { readiness } = gate;
    await until(async () => (await readiness()).status === "ready", { what: "the gate is ready again" });
    expect(Array.isArray(await until(() => list(bus), { what: "the list answers again" }))).toBe(true);
  });

  it("stops at once while Redis is away", async () => {
    await redis.kill();
    const started = await startGate(nats, { REDIS_URL: redis.url });
    await until(async () => (await started.readiness()).status === "degraded", { what: "the gate misses redis" });
    const before = performance.now();
    await started.stop();
    expect(performance.now() - before).toBeLessThan(3_000);
    await redis.restart();
  });

  it("refuses this list without REDIS_URL and says why", async () => {
    gate = await startGate(nats);
    await expect(list(bus)).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("REDIS_URL"),
    });
    expect((await gate.readiness()).workers[0]?.degraded?.[0]).toContain("REDIS_URL is not set");
  });
});

describe("a lost acknowledgement", () => {
  const body = (decision_id: string): ApprovalBody => ({
    function_call_id: "c1",
    args_digest: "sha256:0",
    decision: "allow",
    reason: null,
    decided_by: "client",
    decision_id,
  });

  it("knows its own decision when the repeated publish meets it, and no other's (I1)", async () => {
    const decisions = createJournalDecisions(bus.journal);
    expect(await decisions.decide(sid, body("mine"))).toBeNull();
    expect(await decisions.decide(sid, body("mine"))).toBeNull();
    expect(await decisions.decide(sid, body("theirs"))).toMatchObject({ body: { decision_id: "mine" } });
  });

  it("stores a decision once, and says so to its decider, over a SIGKILL of the bus", async () => {
    const own = await connectBus({
      url: nats.urlFor("approval-gate"),
      worker: "approval-gate",
      instance: "i1",
      logger,
    });
    try {
      const decisions = createJournalDecisions(own.journal);
      await nats.kill();
      const answers = Promise.all(["a", "b", "c"].map((id) => decisions.decide(sid, body(id))));
      await nats.restart();
      const first = (await answers).filter((answer) => answer === null);
      expect(first).toHaveLength(1);
    } finally {
      await own.close();
    }
  });
});
