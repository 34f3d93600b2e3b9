// A worker whose bus goes away: readiness, results that must not be lost, registration, the admin port.
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { aGate, anEcho, aWork, connectCaller, echo, keyOf, startWorker, work, workerName } from "./support.ts";

let nats: StartedNats;
beforeEach(async () => {
  nats = await startNats();
});
afterEach(() => nats.stop());

async function get(port: number | undefined, path: string): Promise<{ status: number; body: string }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: response.status, body: await response.text() };
}

describe("a lost bus", () => {
  it("does not lose the result of a handler: it is recorded after the restart, and the caller gets it (I4)", async () => {
    const key = keyOf("m1");
    const gate = aGate();
    const started = aGate();
    let runs = 0;
    await using worker = await startWorker(nats, {
      functions: [
        aWork(async () => {
          runs += 1;
          started.open();
          await gate.opened;
          return { runs };
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    const call = bus.call(work, {}, { idempotencyKey: key, epoch: 1 });
    await started.opened;
    await nats.kill();
    gate.open();
    await until(
      () => worker.records.some(({ message }) => message.startsWith("an outcome could not be recorded yet")),
      {
        what: "the worker to notice that the outcome cannot be recorded",
      },
    );
    await nats.restart();
    expect(await call).toEqual({ runs: 1 });
    expect((await bus.outcomes.read(key, { fresh: true }))?.record).toMatchObject({
      status: "done",
      result: { runs: 1 },
    });
    expect(runs).toBe(1);
  });

  it("flips readiness, keeps liveness, and both are fine again after the restart without a restart of the worker", async () => {
    await using worker = await startWorker(nats, { functions: [anEcho()], env: { ADMIN_PORT: "0" } });
    const port = worker.handle.adminPort;
    expect(await get(port, "/readyz")).toMatchObject({ status: 200 });
    await nats.kill();
    await until(async () => (await get(port, "/readyz")).status === 503, { what: "readiness to drop" });
    expect((await get(port, "/livez")).status).toBe(200);
    await nats.restart();
    await until(async () => (await get(port, "/readyz")).status === 200, { what: "readiness to return" });
    await using bus = await connectCaller(nats);
    await until(() => bus.registry.isInstanceLive(workerName, worker.instance), {
      what: "the worker to be registered",
    });
    expect(await bus.call(echo, { text: "a" })).toEqual({ text: "a" });
    expect(worker.records.some(({ message }) => message === "registered again after a reconnect")).toBe(true);
  });

  it("shows within seconds when the server is frozen, not gone", async () => {
    await using worker = await startWorker(nats, { functions: [anEcho()] });
    await nats.freeze();
    try {
      // The signal stops the server a moment after it was sent.
      const readiness = await until(
        async () => {
          const report = await worker.handle.readiness();
          return report.status === "not_ready" && report;
        },
        { timeoutMs: 5_000, what: "readiness to drop" },
      );
      expect(readiness.workers[0]?.reason).toBe("the bus did not answer in time");
    } finally {
      await nats.thaw();
    }
    await until(async () => (await worker.handle.readiness()).status === "ready", { what: "readiness to return" });
  });
});

describe("the admin port", () => {
  it("lists each worker, tells its background's reason, and keeps a degraded one ready", async () => {
    let reason: string | null = "still loading";
    const background = [{ name: "loader", start: async () => {}, stop: async () => {}, readiness: () => reason }];
    await using worker = await startWorker(nats, { functions: [anEcho()], background, env: { ADMIN_PORT: "0" } });
    const port = worker.handle.adminPort;
    const waiting = await get(port, "/readyz");
    expect(waiting.status).toBe(503);
    expect(JSON.parse(waiting.body)).toMatchObject({
      status: "not_ready",
      workers: [
        { worker: workerName, instance: worker.instance, state: "ready", ready: false, reason: "still loading" },
      ],
    });
    reason = "degraded: Redis is away";
    const degraded = await get(port, "/readyz");
    expect(degraded.status).toBe(200);
    expect(JSON.parse(degraded.body)).toMatchObject({ status: "degraded", workers: [{ degraded: ["Redis is away"] }] });
    reason = null;
    expect(JSON.parse((await get(port, "/readyz")).body)).toMatchObject({ status: "ready" });
    expect((await get(port, "/nothing")).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${port}/livez`, { method: "POST" })).status).toBe(405);
  });

  it("counts calls by worker, function and code, and no id is a label", async () => {
    await using worker = await startWorker(nats, {
      functions: [anEcho(), aWork(() => Promise.reject(new Error("no")))],
      env: { ADMIN_PORT: "0" },
    });
    await using bus = await connectCaller(nats);
    await bus.call(echo, { text: "a" }, { sessionId: "s-secret" });
    await bus.call(work, {}).catch(() => "expected");
    const { body } = await get(worker.handle.adminPort, "/metrics");
    expect(body).toContain('flotilla_calls_total{worker="demo",function="probe::echo",code="OK"} 1');
    expect(body).toContain('flotilla_calls_total{worker="demo",function="probe::work",code="INTERNAL"} 1');
    expect(body).toContain('flotilla_call_duration_ms_count{worker="demo",function="probe::echo"} 1');
    expect(body).toContain('flotilla_calls_in_flight{worker="demo"}');
    expect(body).not.toContain("s-secret");
    expect(body).not.toContain(worker.instance);
  });
});
