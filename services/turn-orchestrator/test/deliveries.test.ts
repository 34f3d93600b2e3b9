// What a replica does with each delivery (commit-design, rules 1 and 2), on a journal in memory.
import { subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { aCommit, aTurnRecord } from "@flotilla/testkit";
import type { JsMsg } from "@nats-io/jetstream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Deliveries } from "../src/engine/deliveries.ts";
import { FakeSession } from "./fakes.ts";

let session: FakeSession;
let deliver: (message: JsMsg) => void;
let deliveries: Deliveries;

beforeEach(async () => {
  vi.useFakeTimers();
  const consume = async ({ callback }: { callback: typeof deliver }) => {
    deliver = callback;
    return { stop: () => {} };
  };
  session = new FakeSession({ js: { consumers: { get: async () => ({ consume }) } } });
  Object.assign(session.deps.bus.nc, { flush: async () => {} });
  deliveries = new Deliveries(session.deps);
  await deliveries.start();
});
afterEach(() => vi.useRealTimers());

const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);

function aMessage(seq: number, subject: string, deliveryCount = 1): JsMsg & { said: string[] } {
  const said: string[] = [];
  const isOpen = () => said.every((word) => word === "working");
  const once = (word: string) => {
    if (isOpen()) said.push(word);
  };
  return {
    seq,
    subject,
    said,
    data: new Uint8Array(),
    time: new Date(0),
    info: { deliveryCount, pending: 1 },
    ack: () => once("ack"),
    nak: (ms?: number) => once(`nak ${ms}`),
    working: () => void said.push("working"),
    term: () => once("term"),
  } as unknown as JsMsg & { said: string[] };
}
const anchor = (seq: number, deliveryCount = 1) => aMessage(seq, subjects.commit(0, session.id, "step"), deliveryCount);
const anInput = (seq: number, id: string, deliveryCount = 1) =>
  aMessage(seq, subjects.input(0, session.id, "start", id), deliveryCount);
const decision = (message: { said: string[] }) => message.said.filter((word) => word !== "working");

async function give<M extends JsMsg>(message: M, ms = 10): Promise<M> {
  deliver(message);
  await later(ms);
  return message;
}

/** A running turn: its start was taken under the anchor `step`. */
async function aRunningTurn(): Promise<number> {
  const input = session.start("m1");
  await give(anInput(input.seq, "m1"));
  const step = session.tail?.seq ?? 0;
  await give(anchor(step));
  expect(session.tail?.kind).toBe("run");
  return step;
}

describe("an input", () => {
  it("wakes an idle session by an anchor, and is given back until a cursor has passed it", async () => {
    const input = session.start("m1");
    expect(decision(await give(anInput(input.seq, "m1")))).toEqual(["nak 250"]);
    expect(session.tail?.kind).toBe("step");
    await give(anchor(session.tail?.seq ?? 0));
    expect(decision(await give(anInput(input.seq, "m1", 2)))).toEqual(["ack"]);
  });

  it("is given back ever more slowly while it cannot be handled", async () => {
    session.deps.bus.journal.tail = async () => {
      throw new FlotillaError("NOT_FOUND", "a body is lost");
    };
    const waits = [];
    for (let count = 1; count <= 7; count++) waits.push(...decision(await give(anInput(1, "m1", count))));
    expect(waits).toEqual(["nak 250", "nak 500", "nak 1000", "nak 2000", "nak 4000", "nak 5000", "nak 5000"]);
  });
});

describe("an anchor", () => {
  it("is held while its session is read for the first time, however long that takes", async () => {
    const input = session.start("m1");
    await give(anInput(input.seq, "m1"));
    const step = session.tail?.seq ?? 0;
    const other = new Deliveries(session.deps);
    await other.start();
    const { readCommits } = session.deps.bus.journal;
    session.deps.bus.journal.readCommits = async (...query) => {
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      return readCommits(...query);
    };
    const message = await give(anchor(step), 4_900);
    expect(message.said.length).toBeGreaterThanOrEqual(7);
    expect(session.tail?.kind).toBe("step");
    await later(200);
    expect(session.tail?.kind).toBe("run");
  });

  it("that comes again to its owner changes nothing", async () => {
    const step = await aRunningTurn();
    const { length } = session.commits;
    expect(decision(await give(anchor(step, 2), 2_000))).toEqual([]);
    expect(session.commits).toHaveLength(length);
    expect(deliveries.running).toBe(1);
  });

  it("of an earlier ownership is acknowledged while a later one runs here", async () => {
    const old = await session.commit("step", aCommit({ session_id: session.id }), { on: "commits", seq: 0 });
    const oldSeq = old.kind === "stored" ? old.seq : 0;
    const state = aTurnRecord({ session_id: session.id });
    await session.commit("idle", aCommit({ session_id: session.id, anchor: oldSeq, state }), {
      on: "commits",
      seq: oldSeq,
    });
    await aRunningTurn();
    expect(decision(await give(anchor(oldSeq, 2)))).toEqual(["ack"]);
  });

  it("whose owner stopped is taken over under the next epoch before anything is called", async () => {
    const step = await aRunningTurn();
    const before = session.tail?.commit;
    const calls = session.calls.length;
    const successor = new Replica(session);
    await successor.start();
    await successor.give(anchor(step, 2));
    const [taken] = session.commits.slice(-1);
    expect(taken?.commit).toMatchObject({
      takeovers: 1,
      anchor: step,
      owner: { epoch: (before?.owner.epoch ?? 0) + 1 },
    });
    expect(taken?.commit).toMatchObject({ entries: [], events: [], ledger: [], cursor: before?.cursor });
    expect(session.calls.length).toBe(calls + 1);
  });

  it("is not counted as a crash after a hand-over", async () => {
    const step = await aRunningTurn();
    await Promise.all([deliveries.stop(), later(100)]);
    expect(session.tail?.commit.handover).toBe(true);
    const successor = new Replica(session);
    await successor.start();
    await successor.give(anchor(step, 2));
    expect(session.tail?.commit).toMatchObject({ takeovers: 0 });
    expect(session.tail?.commit.handover).toBeUndefined();
  });

  it("that is newer than what can be read is given back", async () => {
    expect(decision(await give(anchor(99)))).toEqual(["nak 100"]);
  });
});

/** Another replica on the same journal. */
class Replica {
  readonly #deliveries: Deliveries;

  constructor(of: FakeSession) {
    this.#deliveries = new Deliveries(of.deps);
  }

  start(): Promise<void> {
    return this.#deliveries.start();
  }

  async give(message: JsMsg): Promise<void> {
    deliver(message);
    await later(50);
  }
}
