// Moving sessions to another number of shards, on a real server: whole, restartable, and only while nothing runs.
import { consumerNames, shardOf, streamNames, subjects } from "@flotilla/contracts";
import { type StartedNats, startNats } from "@flotilla/testkit";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Bus, ensureStreams, migrateShards, readShards } from "../src/index.ts";
import { type Seen, seenOf, writeSessions } from "./shard-journal.ts";
import { busOf, rejection, serve } from "./support.ts";

let stack: AsyncDisposableStack;
let nats: StartedNats;
let nc: NatsConnection;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  nats = stack.use(await startNats());
  const { user, password } = nats.credentials.operator ?? { user: "", password: "" };
  nc = await connect({ servers: `127.0.0.1:${nats.port}`, user, pass: password });
  stack.defer(() => nc.close());
});
afterEach(() => stack.disposeAsync());

/** Reads with the number of shards that is stored now. */
async function withBus<T>(work: (bus: Bus) => Promise<T>): Promise<T> {
  await using own = new AsyncDisposableStack();
  return await work(await busOf(own, nats, "operator"));
}
const seenOfAll = (sids: Iterable<string>): Promise<Map<string, Seen>> =>
  withBus(async (bus) => {
    const seen = new Map<string, Seen>();
    for (const sid of sids) seen.set(sid, await seenOf(bus, sid));
    return seen;
  });
const turnStepStreams = (): Promise<string[]> =>
  withBus(async ({ jsm }) => {
    const names: string[] = [];
    for await (const name of jsm.streams.names()) if (name.startsWith("TURN_STEP_")) names.push(name);
    return names.sort();
  });

class Crash extends Error {}

describe("migrateShards", () => {
  it("takes 40 sessions from 1 to 3 to 2 shards and loses nothing of any (I1, I6)", async () => {
    const sessions = await withBus((bus) => writeSessions(bus, 40));
    const before = await seenOfAll(sessions.keys());
    for (const [from, to] of [
      [1, 3],
      [3, 2],
    ] as const) {
      const result = await migrateShards(nc, { to });
      const moved = [...sessions.keys()].filter((sid) => shardOf(sid, from) !== shardOf(sid, to));
      expect(result).toMatchObject({ from, to, sessions: 40, moved: moved.length });
      expect(await readShards(nc)).toBe(to);
      expect(await turnStepStreams()).toEqual(Array.from({ length: to }, (_, shard) => streamNames.turnStep(shard)));
      expect(await seenOfAll(sessions.keys())).toEqual(before);
    }
    await withBus(async ({ jsm }) => {
      for (const shard of [0, 1]) {
        const { config, state } = await jsm.streams.info(streamNames.turnStep(shard), { subjects_filter: ">" });
        expect(config.duplicate_window).toBe(120_000_000_000);
        const strangers = Object.keys(state.subjects ?? {}).filter((subject) => {
          const [, , sid = ""] = subject.split(".");
          return shardOf(sid, 2) !== shard;
        });
        expect(strangers).toEqual([]);
        for (const name of [consumerNames.turnStep, consumerNames.projector]) {
          expect((await jsm.consumers.info(streamNames.turnStep(shard), name)).name).toBe(name);
        }
      }
    });
  });

  it("leaves a journal that takes inputs and commits, and knows the ids of before (I6)", async () => {
    const sessions = await withBus((bus) => writeSessions(bus, 12));
    await migrateShards(nc, { to: 3 });
    await withBus(async ({ journal }) => {
      for (const [sid] of sessions) {
        const again = await journal.publishInput(sid, "start", "m-1", { text: "other" });
        expect(again).toMatchObject({ kind: "exists", input: { digest: "digest-m-1" } });
        const tail = await journal.tail(sid, { fresh: true });
        const seq = (await journal.last(sid))?.seq ?? 0;
        const fresh = await journal.publishInput(sid, "start", "m-9", {}, { fence: seq });
        expect(fresh.kind).toBe("stored");
        if (tail === null) continue;
        const commit = { ...tail.commit, commit_id: `c-${sid}`, seq_no: tail.commit.seq_no + 1 };
        expect((await journal.commit("idle", commit, { on: "commits", seq: tail.seq })).kind).toBe("stored");
      }
    });
  });

  it("gives moved messages sequences above all that a client can have seen of them (I10)", async () => {
    const sessions = await withBus((bus) => writeSessions(bus, 18));
    const firstAndLast = () =>
      withBus(async ({ journal }) => {
        const ends = new Map<string, readonly [number, number]>();
        for (const [sid] of sessions) {
          ends.set(sid, [(await journal.readInputs(sid, 0))[0]?.seq ?? 0, await journal.lastSequence(sid)]);
        }
        return ends;
      });
    let earlier = await firstAndLast();
    for (const [from, to] of [
      [1, 3],
      [3, 2],
      [2, 1],
    ] as const) {
      await migrateShards(nc, { to });
      const later = await firstAndLast();
      for (const [sid, [first]] of later) {
        const isMoved = shardOf(sid, from) !== shardOf(sid, to);
        if (isMoved) expect(first, sid).toBeGreaterThan(earlier.get(sid)?.[1] ?? 0);
        else expect(later.get(sid), sid).toEqual(earlier.get(sid));
      }
      earlier = later;
    }
  });

  it("makes the projector's consumers anew, so that no projection of before is taken for one of now (I7)", async () => {
    await withBus((bus) => writeSessions(bus, 3));
    const births = () =>
      withBus(async ({ jsm }) => {
        const { created } = await jsm.consumers.info(streamNames.turnStep(0), consumerNames.projector);
        return String(created);
      });
    const seen = [await births()];
    for (const to of [2, 1]) {
      await migrateShards(nc, { to });
      seen.push(await births());
    }
    expect(new Set(seen).size).toBe(3);
  });

  it("goes on after a crash at any point, there and back", async () => {
    const sessions = await withBus((bus) => writeSessions(bus, 6));
    const before = await seenOfAll(sessions.keys());
    const points = new Set<string>();
    let didCrash = true;
    for (let point = 1; didCrash; point++) {
      didCrash = false;
      for (const to of [3, 1]) {
        const crash = await crashAt(point, to);
        if (crash === null) continue;
        didCrash = true;
        points.add(crash.split(" ")[0] ?? "");
        await migrateShards(nc, { to });
        expect(await seenOfAll(sessions.keys()), crash).toEqual(before);
      }
    }
    expect([...points].sort()).toEqual([
      "begin",
      "copy",
      "create",
      "delete",
      "end",
      "lift",
      "open",
      "purge",
      "set",
      "settle",
    ]);
  }, 120_000);

  it("finds half of a move when the process is killed by anything else, and takes it back on request", async () => {
    const sessions = await withBus((bus) => writeSessions(bus, 12));
    const before = await seenOfAll(sessions.keys());
    expect(await crashAt(30, 3)).toContain("copy");
    expect(await readShards(nc)).toBe(1);
    expect(await rejection(migrateShards(nc, { to: 4 }))).toMatchObject({
      code: "STREAM_MISMATCH",
      message:
        "a move from 1 to 3 shards has begun and not ended; end it with `flotilla migrate-shards --to 3`, or take it back with `flotilla migrate-shards --to 1`",
    });
    expect(await migrateShards(nc, { to: 1 })).toMatchObject({ to: 1, sessions: 12, moved: 0 });
    expect(await seenOfAll(sessions.keys())).toEqual(before);
    expect(await turnStepStreams()).toEqual(["TURN_STEP_0"]);
  });

  it("changes nothing when the number is the stored one, and says which numbers there can be", async () => {
    await withBus((bus) => writeSessions(bus, 3));
    const changes: string[] = [];
    const beforeChange = (what: string): void => void changes.push(what);
    expect(await migrateShards(nc, { to: 1, beforeChange })).toEqual({
      from: 1,
      to: 1,
      sessions: 3,
      moved: 0,
      copied: 0,
    });
    expect(changes).toEqual([]);
    for (const to of [0, 257, 1.5, Number.NaN]) {
      expect(await rejection(migrateShards(nc, { to }))).toMatchObject({ code: "CONFIG_INVALID", field: "--to" });
    }
  });

  it("takes nothing away when a new shard holds something else under a session's name", async () => {
    const sessions = await withBus((bus) => writeSessions(bus, 6));
    const before = await seenOfAll(sessions.keys());
    const [sid = ""] = [...sessions.keys()].filter((candidate) => shardOf(candidate, 3) !== 0);
    const shard = shardOf(sid, 3);
    await migrateShards(nc, {
      to: 3,
      beforeChange: (what) => {
        if (what.startsWith(`copy ${sid} `)) nc.publish(subjects.input(shard, sid, "wake", "foreign"), "{}");
      },
    }).then(
      () => expect.unreachable(),
      (error: unknown) => expect(String(error)).toContain(`holds of session ${sid} is not a copy of it`),
    );
    expect(await readShards(nc)).toBe(1);
    await migrateShards(nc, { to: 1 });
    expect(await seenOfAll(sessions.keys())).toEqual(before);
  });
});

describe("while a move is open", () => {
  it("no worker starts, and `up` names the command that ends it", async () => {
    await withBus((bus) => writeSessions(bus, 6));
    await crashAt(12, 3);
    const end = "end it with `flotilla migrate-shards --to 3`";
    const policy = await rejection(busOf(stack, nats, "policy"));
    expect(policy).toMatchObject({ code: "STREAM_MISMATCH", message: expect.stringContaining(end) });
    expect((await rejection(ensureStreams(nc, { shards: 1 }))).message).toContain(end);
    await migrateShards(nc, { to: 3 });
    expect(await withBus(async ({ journal }) => journal.shards)).toBe(3);
  });
});

describe("a fleet that is not stopped", () => {
  it.each(["turn-orchestrator", "harness", "session", "approval-gate"])(
    "refuses to be moved while %s is live",
    async (worker) => {
      const bus = await busOf(stack, nats, worker);
      await bus.registry.register({ worker, version: "1.0.0", priority: 0, functions: [], meta: {} });
      await answerPings(bus);
      expect(await rejection(migrateShards(nc, { to: 2 }))).toMatchObject({
        code: "FLEET_RUNNING",
        message: `${worker}-0 is live; stop the workers first (flotilla down, or scale them to zero)`,
      });
      expect(await readShards(nc)).toBe(1);
    },
  );

  it("counts a swap of a writer as one, and neither other workers nor what a killed one left in the registry", async () => {
    const swap = await busOf(stack, nats, "approval-gate", { instance: "swap-0" });
    await serve(swap, "approval::resolve", () => ({}));
    const policy = await busOf(stack, nats, "policy");
    await serve(policy, "policy::check_permissions", () => ({}));
    await answerPings(policy);
    // Nobody answers for the swap, as for a process that was killed.
    expect(await migrateShards(nc, { to: 2 })).toMatchObject({ to: 2 });
    await answerPings(swap);
    expect(await rejection(migrateShards(nc, { to: 1 }))).toMatchObject({ code: "FLEET_RUNNING" });
  });

  it("refuses to be moved while a session is in the middle of a turn, and says how to end it", async () => {
    const sessions = await withBus((bus) => writeSessions(bus, 4));
    await withBus(async ({ journal }) => {
      const tail = await journal.tail("s-0", { fresh: true });
      if (tail === null) throw new Error("s-0 has no commit");
      const commit = { ...tail.commit, commit_id: "c-open", seq_no: 99 };
      await journal.commit("run", commit, { on: "commits", seq: tail.seq });
    });
    const before = await seenOfAll(sessions.keys());
    expect(await rejection(migrateShards(nc, { to: 3 }))).toMatchObject({
      code: "SESSION_BUSY",
      message:
        "session s-0 is in the middle of a turn; start the fleet with TURN_SHARDS=1, let it end (or `flotilla abort <session>`), and stop it again",
      details: { sessions: ["s-0"] },
    });
    expect(await seenOfAll(sessions.keys())).toEqual(before);
  });
});

/** As the runtime of a worker does while it lives. */
async function answerPings({ nc: connection, instance }: Bus): Promise<void> {
  connection.subscribe(subjects.instance(instance), { callback: (_, message) => void message.respond() });
  await connection.flush();
}

/** What it was about to do when it crashed; null when it ended before. */
async function crashAt(point: number, to: number): Promise<string | null> {
  let changes = 0;
  let crash: string | null = null;
  const beforeChange = (what: string): void => {
    if (++changes < point) return;
    crash ??= what;
    throw new Crash(what);
  };
  await migrateShards(nc, { to, beforeChange }).catch((error: unknown) => {
    if (!(error instanceof Crash)) throw error;
  });
  return crash;
}
