// The projector on real NATS and Redis: losses of Redis, of replicas and of its consumer (I7).
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { streamNames, subjects } from "@flotilla/contracts";
import { keys } from "@flotilla/state";
import { until } from "@flotilla/testkit";
import type { ConsumerMessages } from "@nats-io/jetstream";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { untilCaughtUp } from "../src/adapters/caught-up.ts";
import { dump, journalOf, type Replica, type Servers, startReplica, startServers, writeTurn } from "./support.ts";

let servers: Servers;
const replicas: Replica[] = [];
const children: ChildProcess[] = [];

beforeEach(async () => {
  servers = await startServers();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const replica of replicas.splice(0)) await replica.stop();
  await servers.stop();
});

async function replica(over: Parameters<typeof startReplica>[1] = {}): Promise<Replica> {
  const started = await startReplica(servers, over);
  replicas.push(started);
  return started;
}

async function total({ state }: Replica): Promise<number> {
  return (await state.listSessions({ limit: 1, offset: 0, order: "desc" })).total;
}

/** The content now equals that of a rebuild from nothing. */
async function expectSameAsRebuilt(one: Replica): Promise<Record<string, unknown>> {
  await untilCaughtUp({ ...one, waitMs: 15_000 });
  const before = await dump(servers.redis.url);
  const rebuilt = await until(() => one.repair.rebuild({ dropCurrent: false, signal: new AbortController().signal }), {
    what: "the repair lock is free",
  });
  expect(rebuilt.commits).toBeGreaterThan(0);
  expect(await dump(servers.redis.url)).toEqual(before);
  return before;
}

describe("projector", () => {
  it("puts every commit into Redis and lists what was committed when the request came", async () => {
    const one = await replica();
    for (let n = 0; n < 20; n++) {
      await writeTurn(servers.operator, `s-${n}`, 1_000 + n);
      await untilCaughtUp({ ...one, waitMs: 5_000 });
      const { sessions } = await one.state.listSessions({ limit: 1, offset: 0, order: "desc" });
      expect(sessions).toEqual([
        {
          session_id: `s-${n}`,
          state: "stopped",
          turn_id: "t-1",
          turn_count: 1,
          updated_at: 1_000 + n,
          created_at: 1_000 + n,
          workspace: "default",
          entry_count: 2,
          cost_usd: 0.25,
          last_message_summary: `last of s-${n}`,
        },
      ]);
    }
    expect(one.projector.readiness?.()).toBeNull();
  });

  it("shares 1,000 sessions between two replicas, and lists each of them once over all pages", async () => {
    const [one, two] = [await replica({ instance: "a" }), await replica({ instance: "b" })];
    const ids = Array.from({ length: 1_000 }, (_, n) => `s-${n}`);
    for (let n = 0; n < ids.length; n += 50) {
      await Promise.all(ids.slice(n, n + 50).map((id, i) => writeTurn(servers.operator, id, 1_000 + n + i)));
    }
    await untilCaughtUp({ ...one, waitMs: 20_000 });
    const seen: string[] = [];
    for (let offset = 0; offset < 1_000; offset += 170) {
      const page = await two.state.listSessions({ limit: 170, offset, order: "asc" });
      expect(page.total).toBe(1_000);
      seen.push(...page.sessions.map((row) => row.session_id));
    }
    expect(seen).toEqual(ids);
    for (const { counts } of [one, two])
      expect((counts.get("applied") ?? 0) + (counts.get("older") ?? 0)).toBeGreaterThan(0);
    await expectSameAsRebuilt(one);
  }, 60_000);

  it("I7: FLUSHALL in the middle of a run loses nothing: the projection rebuilds by itself", async () => {
    const one = await replica();
    const redis = new Redis(servers.redis.url);
    for (let n = 0; n < 120; n++) {
      if (n % 40 === 20) await redis.flushall();
      await writeTurn(servers.operator, `s-${n}`, 1_000 + n);
    }
    await redis.flushall();
    redis.disconnect();
    await untilCaughtUp({ ...one, waitMs: 10_000 });
    expect(await total(one)).toBe(120);
    await expectSameAsRebuilt(one);
  });

  it("is degraded, not unready, while Redis is away, and catches up after its SIGKILL (I7)", async () => {
    const one = await replica();
    await writeTurn(servers.operator, "s-before");
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    await servers.redis.kill("SIGKILL");
    await until(() => one.projector.readiness?.() === "degraded: redis", { what: "the loss of Redis shows" });
    await writeTurn(servers.operator, "s-during");
    await servers.redis.restart();
    await until(() => one.projector.readiness?.() === null, { what: "the projector is whole again" });
    await untilCaughtUp({ ...one, waitMs: 15_000 });
    expect(await total(one)).toBe(2);
    await expectSameAsRebuilt(one);
  });

  it("gives back what a Redis that is being failed over refuses, and writes it later (field: activepieces/activepieces PR#14626)", async () => {
    const one = await replica();
    await writeTurn(servers.operator, "s-before");
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    const redis = new Redis(servers.redis.url);
    await redis.replicaof("127.0.0.1", "1");
    for (let n = 0; n < 5; n++) await writeTurn(servers.operator, `s-${n}`);
    await until(() => one.counts.get("returned"), { what: "commits are given back" });
    expect(one.projector.readiness?.()).toBe("degraded: redis");
    await redis.replicaof("NO", "ONE");
    redis.disconnect();
    await until(async () => (await total(one)) === 6, { what: "all sessions are listed", timeoutMs: 20_000 });
    await expectSameAsRebuilt(one);
  });

  it("starts without Redis and builds the projection when it comes", async () => {
    await writeTurn(servers.operator, "s-1");
    await servers.redis.kill("SIGKILL");
    const one = await replica();
    await until(() => one.projector.readiness?.() === "degraded: redis", { what: "the absence of Redis shows" });
    await servers.redis.restart();
    await untilCaughtUpLater(one);
    expect(await total(one)).toBe(1);
  });

  it("reads again what a restarted Redis had not saved, from the checkpoint on", async () => {
    const one = await replica();
    for (const id of ["s-1", "s-2"]) await writeTurn(servers.operator, id);
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    const expected = await dump(servers.redis.url);
    const redis = new Redis(servers.redis.url);
    // As after a crash of a Redis with a snapshot: the marker is of the process before, the newest session is missing.
    const generation = await redis.hget(keys.projection, "current");
    const p = `${keys.root}${generation}:`;
    const through = (await servers.operator.journal.readCommits("s-2", 1))[0]?.seq ?? 0;
    await redis
      .multi()
      .del(`${p}turn_state:s-2`, `${p}entries:s-2`)
      .zrem(`${p}sessions`, "s-2")
      .zrem(`${p}sessions:default`, "s-2")
      .hset(keys.projection, "run_id", "before", "through:0", String(through - 1))
      .exec();
    one.projector.kick();
    await until(async () => (await one.projector.inspect()).condition === "complete", { what: "it caught up" });
    expect(await dump(servers.redis.url)).toEqual(expected);
    expect(await redis.hget(keys.projection, "current")).toBe(generation);
    redis.disconnect();
  });

  it("replaces a projection that was made from other streams", async () => {
    const one = await replica();
    await writeTurn(servers.operator, "s-1");
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    const expected = await dump(servers.redis.url);
    const redis = new Redis(servers.redis.url);
    const p = `${keys.root}${await redis.hget(keys.projection, "current")}:`;
    await redis.hset(`${p}turn_state:s-1`, "seq", "999999", "row", "{}");
    await redis.hset(`${p}entries:s-of-old`, "e", "1.0 {}");
    await redis.hset(keys.projection, "journal", "streams-that-are-gone");
    redis.disconnect();
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    expect(await dump(servers.redis.url)).toEqual(expected);
  });

  it("finishes what a replica left that died in the middle of a rebuild", async () => {
    const one = await replica();
    await writeTurn(servers.operator, "s-1");
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    const redis = new Redis(servers.redis.url);
    await redis.hset(keys.projection, "building", "pdeadbeef");
    await redis.hset(`${keys.root}pdeadbeef:sessions`, "half", "built");
    await until(async () => (await redis.hget(keys.projection, "building")) === null, { what: "the rebuild is over" });
    await until(async () => (await redis.exists(`${keys.root}pdeadbeef:sessions`)) === 0, {
      what: "its keys are gone",
    });
    redis.disconnect();
    expect(await total(one)).toBe(1);
  });

  it("loses nothing to SIGKILL of a projector in mid-stream", async () => {
    const child = spawnProjector();
    const progress = countOutput(child);
    const redis = new Redis(servers.redis.url);
    await until(async () => (await redis.hexists(keys.projection, "current")) === 1, {
      what: "the child has built the projection",
      timeoutMs: 20_000,
    });
    redis.disconnect();
    let sessions = 0;
    const write = () => writeTurn(servers.operator, `s-${sessions}`, 1_000 + sessions++);
    while (progress() < 60) await write();
    child.kill("SIGKILL");
    for (let n = 0; n < 30; n++) await write();
    expect(progress()).toBeLessThan(3 * sessions);
    const one = await replica();
    // A reader does not wait for the dead one's share, which is delivered again after 10 s.
    const start = performance.now();
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    expect(performance.now() - start).toBeLessThan(4_000);
    expect(await total(one)).toBe(sessions);
    await expectSameAsRebuilt(one);
    await until(
      async () => {
        const info = await servers.operator.jsm.consumers.info(streamNames.turnStep(0), "projector");
        return info.num_pending + info.num_ack_pending === 0;
      },
      { what: "every commit is acknowledged", timeoutMs: 25_000 },
    );
    expect(one.counts.get("older") ?? 0).toBeGreaterThan(0);
    await expectSameAsRebuilt(one);
  }, 60_000);

  it("pulls anew when its consumer has work and delivers nothing (field: nats-io/nats-server#5679)", async () => {
    let opened = 0;
    const deaf = { stop: () => {}, closed: () => new Promise<void>(() => {}) } as unknown as ConsumerMessages;
    const one = await replica({
      stallMs: 200,
      consumerLookMs: 100,
      openConsumer: async (shard, onMessage) => {
        opened += 1;
        if (opened === 1) return deaf;
        const consumer = await servers.operator.js.consumers.get(streamNames.turnStep(shard), "projector");
        return consumer.consume({ callback: onMessage });
      },
    });
    await until(async () => (await one.projector.inspect()).condition === "complete", {
      what: "the projection exists",
    });
    await writeTurn(servers.operator, "s-1");
    await until(() => one.counts.get("applied") === 3, { what: "the commits were delivered", timeoutMs: 15_000 });
    expect(opened).toBeGreaterThan(1);
    await until(() => one.projector.readiness?.() === null, { what: "the stall is over" });
  });

  it("reads the journal past a consumer that stays deaf (field: nats-io/nats-server#5679)", async () => {
    const deaf = { stop: () => {}, closed: () => new Promise<void>(() => {}) } as unknown as ConsumerMessages;
    const one = await replica({ stallMs: 200, consumerLookMs: 100, openConsumer: async () => deaf });
    await until(async () => (await one.projector.inspect()).condition === "complete", {
      what: "the projection exists",
    });
    await writeTurn(servers.operator, "s-1");
    await until(async () => (await total(one)) === 1, { what: "the session is listed", timeoutMs: 15_000 });
    expect(one.projector.readiness?.()).toMatch(/^degraded: .*delivers nothing/);
  });

  it("puts a commit that cannot be read among the dead letters and goes on", async () => {
    const one = await replica({ retryMs: 10 });
    const subject = subjects.commit(0, "s-broken", "idle");
    const broken = await servers.operator.js.publish(subject, "{ not json");
    await writeTurn(servers.operator, "s-1");
    await untilCaughtUp({ ...one, waitMs: 10_000 });
    const letter = await until(
      () => servers.operator.jsm.direct.getMessage(streamNames.dead, { last_by_subj: subjects.dead("session") }),
      { what: "the dead letter" },
    );
    expect(letter.json()).toMatchObject({ subject, seq: broken.seq });
    expect(await total(one)).toBe(1);
  });

  it("goes on by itself after SIGKILL of nats-server in mid-stream", async () => {
    const one = await replica();
    for (let n = 0; n < 10; n++) await writeTurn(servers.operator, `s-${n}`, 1_000 + n);
    await servers.nats.kill("SIGKILL");
    await servers.nats.restart();
    for (let n = 10; n < 20; n++) await writeTurn(servers.operator, `s-${n}`, 1_000 + n);
    await until(async () => (await total(one)) === 20, { what: "all sessions are listed", timeoutMs: 20_000 });
    await expectSameAsRebuilt(one);
    expect(one.projector.readiness?.()).toBeNull();
  });

  it("keeps sessions of several shards in one list", async () => {
    await servers.stop();
    servers = await startServers({ shards: 3 });
    const one = await replica();
    for (let n = 0; n < 30; n++) await writeTurn(servers.operator, `s-${n}`, 1_000 + n);
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    expect(await total(one)).toBe(30);
    await expectSameAsRebuilt(one);
  });

  it("shows nothing of a rebuild to a reader: the list stays whole while it runs", async () => {
    const one = await replica();
    for (let n = 0; n < 200; n++) await journalOf(servers.operator, `s-${n}`).commit("idle");
    await untilCaughtUp({ ...one, waitMs: 5_000 });
    let isDone = false;
    const rebuild = one.repair.rebuild({ dropCurrent: false, signal: new AbortController().signal }).finally(() => {
      isDone = true;
    });
    const totals = new Set<number>();
    while (!isDone) totals.add(await total(one));
    expect(await rebuild).toMatchObject({ sessions: 200, commits: 200 });
    expect([...totals]).toEqual([200]);
  });
});

async function untilCaughtUpLater(one: Replica): Promise<void> {
  await until(() => untilCaughtUp({ ...one, waitMs: 500 }).then(() => true), {
    what: "the projection has caught up",
    timeoutMs: 15_000,
  });
}

function spawnProjector(): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, "projector-child.ts")], {
    env: { ...process.env, TEST_NATS_URL: servers.nats.urlFor("session"), TEST_REDIS_URL: servers.redis.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  return child;
}

function countOutput(child: ChildProcess): () => number {
  let count = 0;
  child.stdout?.on("data", (data: Buffer) => {
    count += data.length;
  });
  return () => count;
}
