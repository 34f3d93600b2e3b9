// The outcome protocol (I4) on a real nats-server: a key runs once, everybody else attaches.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Bus, OutcomeRecord } from "@flotilla/bus";
import { subjects } from "@flotilla/contracts";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { aGate, aWork, codeOf, connectCaller, keyOf, startWorker, work, workerName } from "./support.ts";

let nats: StartedNats;
const children: ChildProcess[] = [];
beforeAll(async () => {
  nats = await startNats();
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(() => nats.stop());

let keys = 0;
function aKey(): string {
  keys += 1;
  return keyOf(`m${keys}`);
}

async function recordOf(bus: Bus, key: string): Promise<OutcomeRecord | undefined> {
  return (await bus.outcomes.read(key, { fresh: true }))?.record;
}

async function untilRunning(bus: Bus, key: string): Promise<number> {
  return until(async () => (await bus.outcomes.read(key, { fresh: true }))?.revision, { what: `a record of ${key}` });
}

/** A worker in another process, which never answers `probe::work`. */
async function startStuckProcess(): Promise<{ child: ChildProcess; instance: string }> {
  const child = fork(new URL("./stuck-worker.ts", import.meta.url), {
    execPath: process.execPath,
    env: { ...process.env, NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile },
  });
  children.push(child);
  const messages: string[] = [];
  child.on("message", (message) => messages.push(String(message)));
  const instance = await until(() => messages[0], { what: "the worker process to be ready" });
  return { child, instance };
}

describe("a keyed call", () => {
  it("runs once: the record is durable before the handler and before the reply, and a repetition gets the same answer", async () => {
    const key = aKey();
    let runs = 0;
    let during: OutcomeRecord | undefined;
    await using bus = await connectCaller(nats);
    await using worker = await startWorker(nats, {
      functions: [
        aWork(async () => {
          during = await recordOf(bus, key);
          runs += 1;
          return { runs };
        }),
      ],
    });
    await until(() => bus.registry.isInstanceLive(workerName, worker.instance), { what: "the worker to be known" });
    const options = { idempotencyKey: key, epoch: 4 };
    expect(await bus.call(work, {}, options)).toEqual({ runs: 1 });
    expect(during).toMatchObject({ status: "running", worker: workerName, instance: worker.instance, epoch: 4 });
    expect(await recordOf(bus, key)).toMatchObject({ status: "done", result: { runs: 1 }, epoch: 4 });
    expect(await bus.call(work, {}, options)).toEqual({ runs: 1 });
    expect(runs).toBe(1);
  });

  it("answers from its record what only looks like a reference to a stored body", async () => {
    const key = aKey();
    const lookalike = { $blob: "deadbeef", bytes: 1 };
    await using _worker = await startWorker(nats, { functions: [aWork(() => lookalike)] });
    await using bus = await connectCaller(nats);
    for (let times = 0; times < 2; times++) {
      expect(await bus.callId(work.id, {}, { idempotencyKey: key })).toEqual(lookalike);
    }
  });

  it("records a failure and answers it again instead of running again", async () => {
    const key = aKey();
    let runs = 0;
    await using _worker = await startWorker(nats, {
      functions: [
        aWork(() => {
          runs += 1;
          throw new Error("hunter2");
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    expect(await codeOf(bus.call(work, {}, { idempotencyKey: key }))).toBe("INTERNAL");
    expect(await codeOf(bus.call(work, {}, { idempotencyKey: key }))).toBe("INTERNAL");
    expect(runs).toBe(1);
    expect(JSON.stringify(await recordOf(bus, key))).not.toContain("hunter2");
  });

  it("runs once when many ask at once over two instances, and all get the one answer", async () => {
    const key = aKey();
    const ran: string[] = [];
    const gate = aGate();
    const slow = (name: string) =>
      aWork(async () => {
        ran.push(name);
        await gate.opened;
        return { by: name };
      });
    await using _first = await startWorker(nats, { functions: [slow("a")] });
    await using _second = await startWorker(nats, { functions: [slow("b")] });
    await using bus = await connectCaller(nats);
    const calls = Array.from({ length: 30 }, () => bus.call(work, {}, { idempotencyKey: key, epoch: 1 }));
    await untilRunning(bus, key);
    gate.open();
    const answers = await Promise.all(calls);
    expect(ran).toHaveLength(1);
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(new Set([JSON.stringify({ by: ran[0] })]));
  });

  it("keeps a large result by reference and answers it in full", async () => {
    const key = aKey();
    const text = "x".repeat(100_000);
    await using _worker = await startWorker(nats, { functions: [aWork(() => ({ text }))] });
    await using bus = await connectCaller(nats);
    expect(await bus.call(work, {}, { idempotencyKey: key })).toEqual({ text });
    const record = await recordOf(bus, key);
    expect(record?.status === "done" && record.result).toMatchObject({ $blob: expect.any(String) as string });
    expect(await bus.call(work, {}, { idempotencyKey: key })).toEqual({ text });
  });

  it("goes on when its caller vanishes, and a successor with a newer epoch attaches (I4)", async () => {
    const key = aKey();
    const gate = aGate();
    let runs = 0;
    await using _worker = await startWorker(nats, {
      functions: [
        aWork(async () => {
          runs += 1;
          await gate.opened;
          return { runs };
        }),
      ],
    });
    const gone = await connectCaller(nats, "gone");
    const lost = codeOf(gone.call(work, {}, { idempotencyKey: key, epoch: 1 }));
    await untilRunning(gone, key);
    await gone.nc.close();
    await lost;
    await using bus = await connectCaller(nats);
    const attached = bus.call(work, {}, { idempotencyKey: key, epoch: 2 });
    gate.open();
    expect(await attached).toEqual({ runs: 1 });
  });

  it("refuses an owner that has been replaced with STALE_EPOCH, here and at another instance", async () => {
    const key = aKey();
    const gate = aGate();
    const functions = [aWork(() => gate.opened)];
    await using first = await startWorker(nats, { functions });
    await using bus = await connectCaller(nats);
    const running = bus.call(work, {}, { idempotencyKey: key, epoch: 5 });
    await untilRunning(bus, key);
    expect(await codeOf(bus.call(work, {}, { idempotencyKey: key, epoch: 4 }))).toBe("STALE_EPOCH");
    await using _second = await startWorker(nats, { functions });
    const codes = await Promise.all(
      Array.from({ length: 12 }, () => codeOf(bus.call(work, {}, { idempotencyKey: key, epoch: 4 }))),
    );
    expect(new Set(codes)).toEqual(new Set(["STALE_EPOCH"]));
    gate.open();
    await running;
    expect(first.handle.workers[0]?.state).toBe("ready");
  });

  it("refuses a key whose record says cancelled", async () => {
    const key = aKey();
    let runs = 0;
    await using _worker = await startWorker(nats, {
      functions: [
        aWork(() => {
          runs += 1;
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    await bus.outcomes.write(key, { status: "cancelled", by: "caller", epoch: 1, at: 1 }, 0);
    expect(await codeOf(bus.call(work, {}, { idempotencyKey: key, epoch: 1 }))).toBe("CANCELLED");
    expect(runs).toBe(0);
  });

  it("refuses a key of another worker and names the header", async () => {
    await using _worker = await startWorker(nats, { functions: [aWork(() => null)] });
    await using bus = await connectCaller(nats);
    const error = await bus
      .call(work, {}, { idempotencyKey: keyOf("m1", "policy") })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "INVALID_INPUT", field: "Fl-Idempotency-Key" });
  });
});

describe("a cancel", () => {
  it("aborts the handler's signal with its reason, and what the handler still answers is the outcome (I14)", async () => {
    const key = aKey();
    await using _worker = await startWorker(nats, {
      functions: [
        aWork(async ({ signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return { partial: (signal.reason as Error).message };
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    const call = bus.call(work, {}, { idempotencyKey: key, epoch: 2 });
    await untilRunning(bus, key);
    bus.nc.publish(subjects.cancel(workerName, key), JSON.stringify({ reason: "the user said stop", epoch: 2 }));
    expect(await call).toEqual({ partial: "the user said stop" });
    expect(await recordOf(bus, key)).toMatchObject({ status: "done" });
  });

  it("becomes CANCELLED when the handler just stops, and is ignored when it comes from an older owner", async () => {
    const key = aKey();
    await using _worker = await startWorker(nats, {
      functions: [
        aWork(
          ({ signal }) =>
            new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
        ),
      ],
    });
    await using bus = await connectCaller(nats);
    let isOver = false;
    const call = codeOf(bus.call(work, {}, { idempotencyKey: key, epoch: 2 })).finally(() => {
      isOver = true;
    });
    await untilRunning(bus, key);
    bus.nc.publish(subjects.cancel(workerName, key), JSON.stringify({ reason: "old", epoch: 1 }));
    bus.nc.publish(subjects.cancel(workerName, key), "not json");
    await bus.nc.request("$SRV.PING.demo", "", { timeout: 2_000 });
    expect(isOver).toBe(false);
    bus.nc.publish(subjects.cancel(workerName, key), JSON.stringify({ reason: "new", epoch: 2 }));
    expect(await call).toBe("CANCELLED");
    expect(await recordOf(bus, key)).toMatchObject({ status: "failed", error: { code: "CANCELLED", message: "new" } });
  });
});

describe("after the SIGKILL of the worker that ran a call", () => {
  it("the outcome is unknown, and only Fl-Reclaim of exactly that record runs it again, once", async () => {
    const key = aKey();
    const { child, instance } = await startStuckProcess();
    await using bus = await connectCaller(nats);
    await until(() => bus.registry.resolve(work.id)?.live, { what: "the worker to be live" });
    const lost = codeOf(bus.call(work, {}, { idempotencyKey: key, epoch: 1, timeoutMs: 3_000 }));
    const revision = await untilRunning(bus, key);
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    let runs = 0;
    await using worker = await startWorker(nats, {
      functions: [
        aWork(() => {
          runs += 1;
          return { runs };
        }),
      ],
    });
    await until(() => bus.registry.isInstanceLive(workerName, worker.instance), { what: "the successor to be known" });
    const options = { idempotencyKey: key, epoch: 2, timeoutMs: 5_000 };
    const unknown = await bus.call(work, {}, options).catch((thrown: unknown) => thrown);
    expect(unknown).toMatchObject({ code: "OUTCOME_UNKNOWN", details: { revision } });
    expect(await codeOf(bus.call(work, {}, { ...options, reclaim: revision + 1 }))).toBe("OUTCOME_UNKNOWN");
    expect(runs).toBe(0);
    const reclaim = { ...options, reclaim: revision };
    const answers = await Promise.all([
      bus.call(work, {}, reclaim),
      bus.call(work, {}, reclaim),
      bus.call(work, {}, reclaim),
    ]);
    expect(answers).toEqual([{ runs: 1 }, { runs: 1 }, { runs: 1 }]);
    expect(await recordOf(bus, key)).toMatchObject({ status: "done", instance: worker.instance });
    expect(instance).not.toBe(worker.instance);
    await lost;
  });

  it("Fl-Reclaim does not take a call away from a live instance: it attaches", async () => {
    const key = aKey();
    const gate = aGate();
    const ran: string[] = [];
    const named = (name: string) =>
      aWork(async () => {
        ran.push(name);
        await gate.opened;
        return { by: name };
      });
    await using _first = await startWorker(nats, { functions: [named("a")] });
    await using bus = await connectCaller(nats);
    const call = bus.call(work, {}, { idempotencyKey: key, epoch: 1 });
    const revision = await untilRunning(bus, key);
    await using _second = await startWorker(nats, { functions: [named("b")] });
    const options = { idempotencyKey: key, epoch: 2, reclaim: revision };
    const attached = Promise.all(Array.from({ length: 10 }, () => bus.call(work, {}, options)));
    gate.open();
    expect(new Set((await attached).map((answer) => JSON.stringify(answer)))).toEqual(new Set(['{"by":"a"}']));
    expect(await call).toEqual({ by: "a" });
    expect(ran).toEqual(["a"]);
  });
});
