// The owner of a session when things around it fail, on a journal in memory.
import type { CommitEvent } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createPorts } from "../src/engine/ports.ts";
import { aHandle, FakeSession } from "./fakes.ts";

let session: FakeSession;
beforeEach(() => {
  vi.useFakeTimers();
  session = new FakeSession();
});
afterEach(() => vi.useRealTimers());

const events = (): CommitEvent[] => session.commits.flatMap(({ commit }) => commit.events);
const ends = (): unknown[] => events().flatMap((event) => (event.type === "agent_end" ? [event.reason] : []));
const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const anAnswer = (text: string) => ({
  message: {
    role: "assistant",
    content: [{ type: "text", text }],
    stop_reason: "end",
    model: "play",
    provider: "scripted",
    timestamp: 1,
  },
  streamed: false,
});

describe("an owner", () => {
  it("finds an abort of which no notice came, while its model call runs (I14)", async () => {
    session.start("m1");
    const handle = aHandle();
    const running = session.runner(handle).run();
    await later(1_000);
    expect(session.calls).toEqual(["provider::scripted::stream"]);
    session.input("abort", { turn_id: "t-m1", reason: null });
    await later(8_000);
    expect(ends()).toEqual(["aborted"]);
    await running;
    expect(handle.said.at(-1)).toBe("ack");
    expect(session.cancelled).toHaveLength(1);
  });

  it("keeps its anchor from redelivery all the while", async () => {
    session.start("m1");
    const handle = aHandle();
    void session.runner(handle).run();
    await later(60_000);
    expect(handle.said.filter((word) => word === "working").length).toBeGreaterThanOrEqual(90);
    expect(handle.said).not.toContain("ack");
  });

  it("stops without another word when a later owner commits", async () => {
    session.start("m1");
    const handle = aHandle();
    const running = session.runner(handle).run();
    await later(100);
    const tail = session.tail;
    if (tail === null) throw new Error("nothing is committed");
    const stored = { ...tail, commit: { ...tail.commit, owner: { instance: "o-2", epoch: 9 } } };
    session.announce?.({ kind: "commit", stored, bytes: 1 });
    await later(100);
    await running;
    expect(handle.said.filter((word) => word !== "working")).toEqual([]);
  });

  it("gives the anchor back when the bus is away for long, and fails nothing", async () => {
    session.ports.checkPolicy = async () => ({ decision: "needs_approval" });
    session.start("m1");
    session.call = async () => {
      throw new FlotillaError("BUS_UNAVAILABLE", "away");
    };
    session.deps.bus.outcomes.read = async () => {
      throw new FlotillaError("BUS_UNAVAILABLE", "away");
    };
    const handle = aHandle();
    const running = session.runner(handle).run();
    await later(200_000);
    await running;
    expect(handle.said.at(-1)).toBe("nak 1000");
    expect(ends()).toEqual([]);
  });

  it("ends a turn that a defect of ours stops, as failed, and the next turn works", async () => {
    session.start("m1");
    session.ports.model = async () => {
      session.ports.model = async () => null;
      throw new TypeError("a defect");
    };
    const running = session.runner(aHandle()).run();
    await later(5_000);
    await running;
    expect(ends()).toEqual(["failed"]);
    expect(session.calls).toEqual([]);
    expect(session.tail).toMatchObject({ kind: "idle", commit: { state: { state: "failed" } } });
    expect(JSON.stringify(session.commits)).not.toContain("a defect");
  });

  it("drops what cannot be opened, visibly, and goes on with what waits behind it", async () => {
    session.start("m1", { request: {} as never });
    session.start("m2");
    session.call = async () => anAnswer("fine");
    const running = session.runner(aHandle()).run();
    await later(10_000);
    await running;
    const rejected = events().filter((event) => event.type === "input_rejected");
    expect(rejected).toEqual([expect.objectContaining({ kind: "start", id: "m1" })]);
    expect(session.tail?.commit.pending).toEqual([expect.objectContaining({ id: "m2" })]);
  });

  it("ends a turn that keeps killing its owners without calling anything again (I4)", async () => {
    session.start("m1");
    const first = session.runner(aHandle()).run();
    await later(100);
    const { commits } = session;
    const handle = aHandle();
    const { SessionRunner } = await import("../src/engine/session-runner.ts");
    const { foldCommits } = await import("@flotilla/contracts");
    const view = foldCommits(session.id, commits);
    const calls = session.calls.length;
    const second = new SessionRunner(session.deps, view, handle, { anchorSeq: 1, epoch: 2, takeovers: 4 }, null).run();
    await later(5_000);
    await second;
    expect(ends()).toEqual(["failed"]);
    expect(session.tail?.commit.state?.error).toMatchObject({ code: "TURN_CRASH_LOOP" });
    expect(session.calls).toHaveLength(calls);
    await later(10_000);
    await first;
  });
});

describe("arming a timer", () => {
  it("waits for the bus instead of failing the turn (I9)", async () => {
    let tries = 0;
    const publish = async () => {
      tries += 1;
      if (tries < 4) throw new Error("timeout");
    };
    const bus = { ...session.deps.bus, js: { publish } } as never;
    const armed = createPorts(bus, () => Date.now()).armTimer("s1", { name: "approval-x", due_at: 1 });
    await later(10_000);
    await armed;
    expect(tries).toBe(4);
  });
});
