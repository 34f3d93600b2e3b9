// The whole demo worker on a real bus, with its own login.
import { type Bus, connectBus } from "@flotilla/bus";
import { demoEffects, randomId, streamNames, subjects } from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { definition } from "../src/worker.ts";

let nats: StartedNats;
let bus: Bus;
let running: WorkersHandle;

beforeAll(async () => {
  nats = await startNats();
  const logger = createLogger({ level: "error", name: "test" });
  bus = await connectBus({ url: nats.url, worker: "operator", instance: randomId(), logger });
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});
beforeEach(async () => {
  running = runWorkers({
    definitions: [definition],
    env: { NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile, LOG_LEVEL: "silent" },
  });
  await running.ready();
  await until(() => bus.registry.resolve("demo::echo")?.live, { what: "the caller has heard of the worker" });
});
afterEach(() => running.stop());

interface CallIds {
  readonly sessionId: string;
  readonly key: string;
}
const ids = (): CallIds => {
  const sessionId = randomId();
  return { sessionId, key: `demo.${sessionId}.t-1.1.t0.1` };
};
const call = (name: string, args: unknown, { sessionId, key }: CallIds = ids()): Promise<unknown> =>
  bus.callId(`demo::${name}`, args, {
    sessionId,
    callId: "t-1-1-0",
    turnId: "t-1",
    idempotencyKey: key,
    epoch: 3,
    timeoutMs: 10_000,
  });
const effects = async (sessionId?: string) => (await bus.call(demoEffects, { session_id: sessionId })).effects;
const phases = async (sessionId: string) => (await effects(sessionId)).map((effect) => effect.phase);

describe("the demo functions", () => {
  it.each([
    ["echo", { text: "hi", repeat: 2, extra: true }, "hihi"],
    ["echo", { text: 5 }, "5"],
    ["echo", {}, ""],
    ["slow", { ms: 5 }, { slept: 5 }],
    ["slow", { ms: "3" }, { slept: 3 }],
    [
      "refund",
      { order: 7, amount: "2.5" },
      { order: "7", refunded: true, amount: 2.5, currency: "USD", refund_id: expect.stringMatching(/^RF-/) },
    ],
    ["ship", { order: "7", ms: 1 }, { order: "7", shipped: true, tracking: expect.stringMatching(/^TR-/) }],
    [
      "lookup",
      { order: "7" },
      { order: "7", item: expect.any(String), status: expect.any(String), total: expect.any(Number), currency: "USD" },
    ],
  ])("%s takes %j", async (name, args, expected) => {
    expect(await call(name, args)).toEqual(expected);
  });

  it("fail fails with the code it is given, as a typed error", async () => {
    await expect(call("fail", { code: "CARD_DECLINED" })).rejects.toMatchObject({
      code: "CARD_DECLINED",
      message: expect.stringContaining("as asked"),
    });
    await expect(call("fail", {})).rejects.toMatchObject({ code: "DEMO_FAILURE" });
  });

  it("refuses arguments that are no object, and does nothing", async () => {
    const own = ids();
    await expect(call("echo", [1], own)).rejects.toMatchObject({ code: "INVALID_INPUT" });
    expect(await effects(own.sessionId)).toEqual([]);
  });

  it("ship answers the same shipment for the same key", async () => {
    const own = ids();
    expect(await call("ship", { order: "9" }, own)).toEqual(await call("ship", { order: "9" }, own));
    expect(await phases(own.sessionId)).toEqual(["start", "done"]);
  });
});

describe("the effects log", () => {
  it("holds key, epoch, call, arguments and phase of every execution, oldest first", async () => {
    const own = ids();
    await call("refund", { order: "7", amount: 3, note: "x" }, own);
    await expect(call("fail", { code: "NOPE" }, { ...own, key: `${own.key}2` })).rejects.toThrow();
    const common = { session_id: own.sessionId, function_call_id: "t-1-1-0", epoch: 3, at: expect.any(Number) };
    const refund = {
      ...common,
      function_id: "demo::refund",
      idempotency_key: own.key,
      args: { order: "7", amount: 3, note: "x" },
    };
    const fail = { ...common, function_id: "demo::fail", idempotency_key: `${own.key}2`, args: { code: "NOPE" } };
    expect(await effects(own.sessionId)).toEqual([
      { ...refund, phase: "start" },
      { ...refund, phase: "done" },
      { ...fail, phase: "start" },
      { ...fail, phase: "done", error: "NOPE" },
    ]);
  });

  it("shows a start that is still running, and holds every session when none is named", async () => {
    const [one, two] = [ids(), ids()];
    const slow = call("slow", { ms: 400 }, one);
    await until(async () => (await phases(one.sessionId)).length === 1, { what: "the start is in the log" });
    await call("echo", { text: "meanwhile" }, two);
    const all = await effects();
    expect(all.map((effect) => effect.session_id)).toEqual(expect.arrayContaining([one.sessionId, two.sessionId]));
    expect(all.map((effect) => effect.at)).toEqual(all.map((effect) => effect.at as number).sort((a, b) => a - b));
    expect(await slow).toEqual({ slept: 400 });
    expect(await phases(one.sessionId)).toEqual(["start", "done"]);
  });

  it.each(["slow", "ship"])("says that %s was aborted, and the call ends at once (I14)", async (name) => {
    const own = ids();
    const progress: number[] = [];
    bus.nc.subscribe(subjects.progress(own.sessionId), {
      callback: (_, message) => void progress.push(message.json<{ done_ms: number }>().done_ms),
    });
    await bus.nc.flush();
    const answer = call(name, { ms: 60_000 }, own).catch((error: unknown) => error);
    await until(async () => (await phases(own.sessionId)).includes("start"), { what: "the start is in the log" });
    bus.nc.publish(subjects.cancel("demo", own.key), JSON.stringify({ reason: "stop", epoch: 3 }));
    expect(await answer).toMatchObject({ code: "CANCELLED" });
    expect(await phases(own.sessionId)).toEqual(["start", "aborted"]);
    expect(progress.every((ms) => ms < 60_000)).toBe(true);
  });

  it("slow reports how far it is, and its end", async () => {
    const own = ids();
    const progress: unknown[] = [];
    bus.nc.subscribe(subjects.progress(own.sessionId), {
      callback: (_, message) => void progress.push(message.json()),
    });
    await bus.nc.flush();
    await call("slow", { ms: 350 }, own);
    const last = {
      turn_id: "t-1",
      function_call_id: "t-1-1-0",
      function_id: "demo::slow",
      done_ms: 350,
      total_ms: 350,
    };
    await until(() => progress.length > 2 && JSON.stringify(progress.at(-1)) === JSON.stringify(last), {
      what: "several reports and the last arrive",
    });
    expect(progress.at(-1)).toEqual(last);
  });

  it("is readable after a SIGKILL of the server, page by page", async () => {
    const own = ids();
    await Promise.all(
      Array.from({ length: 300 }, (_, n) => call("echo", { text: String(n) }, { ...own, key: `${own.key}-${n}` })),
    );
    await nats.kill();
    await nats.restart();
    await until(() => bus.connected, { what: "the bus is back" });
    const log = await until(() => effects(own.sessionId), { what: "the log can be read" });
    expect(log).toHaveLength(600);
    expect(new Set(log.map((effect) => `${effect.idempotency_key} ${effect.phase}`)).size).toBe(600);
  });

  it("does not run a function whose start cannot be recorded (I4)", async () => {
    const own = ids();
    const { config } = await bus.jsm.streams.info(streamNames.demoEffects);
    await bus.jsm.streams.update(streamNames.demoEffects, { ...config, max_msg_size: 16 });
    try {
      await expect(call("refund", { order: "7" }, own)).rejects.toMatchObject({ code: "INTERNAL" });
    } finally {
      await bus.jsm.streams.update(streamNames.demoEffects, config);
    }
    expect(await effects(own.sessionId)).toEqual([]);
  });

  it("keeps what calls without a session did", async () => {
    const before = (await effects()).length;
    expect(await bus.callId("demo::echo", { text: "loose" })).toBe("loose");
    const last = (await effects()).slice(before);
    expect(last).toMatchObject([
      {
        session_id: null,
        function_call_id: null,
        idempotency_key: null,
        epoch: 0,
        args: { text: "loose" },
        phase: "start",
      },
      { phase: "done" },
    ]);
  });
});
