// Calls through the production runtime and a real nats-server: answers, errors, deadlines, context.
import { headerNames, subjects } from "@flotilla/contracts";
import { FlotillaError, isFlotillaError } from "@flotilla/errors";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { headers as natsHeaders } from "@nats-io/transport-node";
import { context, trace } from "@opentelemetry/api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { implement } from "../src/index.ts";
import { aGate, anEcho, aWork, codeOf, connectCaller, echo, startWorker, work, workerName } from "./support.ts";

let nats: StartedNats;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats.stop());

describe("a call", () => {
  it("reaches the handler with its caller and ids, and its answer comes back", async () => {
    const seen: unknown[] = [];
    await using worker = await startWorker(nats, {
      functions: [
        anEcho(),
        aWork(({ caller, sessionId, messageId, turnId, callId, workspace, epoch, attempt, functionId }) => {
          seen.push({ caller, sessionId, messageId, turnId, callId, workspace, epoch, attempt, functionId });
          return { ok: true };
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    expect(await bus.call(echo, { text: "ab", repeat: 2 })).toEqual({ text: "abab" });
    const ids = { sessionId: "s-1", messageId: "m-1", turnId: "t-1", callId: "t-1-1-0" };
    await bus.call(work, {}, { ...ids, caller: "agent", workspace: "blue", epoch: 3, attempt: 2 });
    expect(seen).toEqual([
      { caller: "agent", ...ids, workspace: "blue", epoch: 3, attempt: 2, functionId: "probe::work" },
    ]);
    const [record] = worker.records.filter(
      (entry) => entry.message === "invocation" && entry.function === "probe::work",
    );
    expect(record).toMatchObject({ caller: "agent", attempt: 2, code: "OK", session_id: "s-1", message_id: "m-1" });
  });

  it("answers a typed error with code, field and details, as headers and as a body", async () => {
    await using _worker = await startWorker(nats, {
      functions: [
        aWork(() => {
          throw new FlotillaError("SESSION_BUSY", "busy\nnow", {
            field: "session_id",
            retryAfterMs: 7,
            details: { a: 1 },
          });
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    const error = await bus.call(work, {}).catch((thrown: unknown) => thrown);
    expect(isFlotillaError(error) && error.toBody()).toEqual({
      code: "SESSION_BUSY",
      message: "busy\nnow",
      field: "session_id",
      retry_after_ms: 7,
      details: { a: 1 },
    });
    const raw = await bus.nc.request(subjects.call(workerName, work.id), "{}", { timeout: 2_000 });
    expect(raw.headers?.get(headerNames.errorCode)).toBe("SESSION_BUSY");
    expect(raw.headers?.get(headerNames.errorMessage)).toBe("busy now");
    expect(raw.json()).toMatchObject({ code: "SESSION_BUSY", message: "busy\nnow" });
  });

  it("names the field of a bad request and never repeats its value", async () => {
    await using _worker = await startWorker(nats, { functions: [anEcho()] });
    await using bus = await connectCaller(nats);
    const ask = (body: string) => bus.nc.request(subjects.call(workerName, echo.id), body, { timeout: 2_000 });
    expect((await ask("{}")).json()).toEqual({ code: "INVALID_INPUT", message: "text: is required", field: "text" });
    expect((await ask('{"text":"a","repeat":0.5}')).json()).toMatchObject({ code: "INVALID_INPUT", field: "repeat" });
    expect((await ask("hunter2")).json()).toEqual({ code: "INVALID_INPUT", message: "the body is not JSON" });
    expect((await ask('["hunter2"]')).string()).not.toContain("hunter2");
  });

  it("answers INTERNAL without the message of a defect, thrown or rejected, and goes on working", async () => {
    const unhandled: unknown[] = [];
    const listener = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", listener);
    await using worker = await startWorker(nats, {
      functions: [
        aWork((_context, name) => {
          if (name === "throw") throw new Error("hunter2 thrown");
          if (name === "reject") return Promise.reject(new Error("hunter2 rejected"));
          if (name === "late") return new Promise((_, reject) => setImmediate(() => reject(new Error("hunter2 late"))));
          if (name === "nothing") return Promise.reject(undefined);
          if (name === "cycle") {
            const cycle: Record<string, unknown> = {};
            cycle.self = cycle;
            return cycle;
          }
          return { fine: true };
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    for (const name of ["throw", "reject", "late", "nothing", "cycle"]) {
      const raw = await bus.nc.request(subjects.call(workerName, work.id), JSON.stringify({ name }), {
        timeout: 2_000,
      });
      expect(raw.json()).toEqual({ code: "INTERNAL", message: "Something went wrong on our side" });
      expect(raw.headers?.toString()).not.toContain("hunter2");
    }
    expect(await bus.call(work, {})).toEqual({ fine: true });
    const defects = worker.records.filter((entry) => entry.level === "error" && entry.message === "invocation");
    expect(defects).toHaveLength(5);
    expect(JSON.stringify(defects[0])).toContain("hunter2 thrown");
    process.off("unhandledRejection", listener);
    expect(unhandled).toEqual([]);
  });

  it("answers TIMEOUT at the deadline, aborts the signal, and survives what the handler does afterwards", async () => {
    const ended = aGate();
    await using _worker = await startWorker(nats, {
      functions: [
        aWork(async ({ signal, deadline }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          ended.open();
          throw new Error(`too late for ${deadline}`);
        }),
      ],
    });
    await using bus = await connectCaller(nats);
    const headers = natsHeaders();
    headers.set(headerNames.timeoutMs, "100");
    const reply = await bus.nc.request(subjects.call(workerName, work.id), "{}", { headers, timeout: 5_000 });
    expect(reply.json()).toMatchObject({ code: "TIMEOUT" });
    await ended.opened;
  });

  it("hands the time left, the session and the trace on to the calls of a handler, without telemetry (I15)", async () => {
    const seen: { left: number; sessionId: string | undefined; traceId: string | undefined }[] = [];
    await using _inner = await startWorker(nats, {
      functions: [
        aWork(({ deadline, sessionId }) => {
          const traceId = trace.getSpanContext(context.active())?.traceId;
          seen.push({ left: deadline - Date.now(), sessionId, traceId });
          return { answered: true };
        }),
      ],
    });
    await using _outer = await startWorker(nats, {
      name: "turn-orchestrator",
      functions: [implement({ ...work, id: "probe::relay" }, (outer) => outer.call(work, {}))],
    });
    await using bus = await connectCaller(nats);
    const headers = natsHeaders();
    headers.set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    headers.set("baggage", "session.id=s-9");
    headers.set(headerNames.timeoutMs, "1500");
    const relay = subjects.call("turn-orchestrator", "probe::relay");
    expect((await bus.nc.request(relay, "{}", { headers, timeout: 3_000 })).json()).toEqual({ answered: true });
    expect(seen).toEqual([
      { left: expect.any(Number) as number, sessionId: "s-9", traceId: "0af7651916cd43dd8448eb211c80319c" },
    ]);
    expect(seen[0]?.left).toBeLessThanOrEqual(1_500);
    expect(seen[0]?.left).toBeGreaterThan(0);
  });

  it("takes and gives bodies that are larger than a message", async () => {
    await using _worker = await startWorker(nats, { functions: [anEcho()] });
    await using bus = await connectCaller(nats);
    const text = "x".repeat(5 * 1024 * 1024);
    expect((await bus.call(echo, { text })).text.length).toBe(text.length);
    expect((await bus.call(echo, { text: "y".repeat(1024 * 1024), repeat: 6 })).text.length).toBe(6 * 1024 * 1024);
  });
});

describe("replicas", () => {
  it("share the load, and one that leaves is not missed", async () => {
    const counts = [0, 0];
    const counting = (index: number) =>
      aWork(() => {
        counts[index] = (counts[index] ?? 0) + 1;
        return null;
      });
    await using first = await startWorker(nats, { functions: [counting(0)] });
    await using _second = await startWorker(nats, { functions: [counting(1)] });
    await using bus = await connectCaller(nats);
    await Promise.all(Array.from({ length: 100 }, () => bus.call(work, {})));
    expect(Math.min(...counts)).toBeGreaterThan(10);
    const before = counts[0];
    await first.handle.stop();
    await Promise.all(Array.from({ length: 20 }, () => bus.call(work, {})));
    expect(counts[0]).toBe(before);
    await until(
      () => bus.registry.workers().find((entry) => entry.manifest.worker === workerName)?.instances.length === 1,
      {
        what: "the registry to show one instance",
      },
    );
  });
});

describe("the NATS service", () => {
  it("answers PING, INFO and STATS to all, by name and by instance", async () => {
    await using worker = await startWorker(nats, {
      functions: [anEcho(), aWork(() => Promise.reject(new Error("no")))],
    });
    await using bus = await connectCaller(nats);
    await bus.call(echo, { text: "a" });
    await codeOf(bus.call(work, {}));
    const ask = async (...parts: string[]) =>
      (await bus.nc.request(["$SRV", ...parts].join("."), "", { timeout: 2_000 })).json<Record<string, unknown>>();
    const identity = { name: workerName, id: worker.instance, version: "1.2.3" };
    for (const suffix of [[], [workerName], [workerName, worker.instance]]) {
      expect(await ask("PING", ...suffix)).toMatchObject({ type: "io.nats.micro.v1.ping_response", ...identity });
      expect(await ask("INFO", ...suffix)).toMatchObject({
        type: "io.nats.micro.v1.info_response",
        ...identity,
        endpoints: [
          {
            name: "probe__echo",
            subject: "fn.demo.probe.echo",
            queue_group: "demo",
            metadata: { function_id: "probe::echo" },
          },
          { name: "probe__work" },
        ],
      });
      expect(await ask("STATS", ...suffix)).toMatchObject({
        type: "io.nats.micro.v1.stats_response",
        ...identity,
        endpoints: [
          { name: "probe__echo", num_requests: 1, num_errors: 0, last_error: "" },
          { name: "probe__work", num_requests: 1, num_errors: 1, last_error: "INTERNAL" },
        ],
      });
    }
    const inst = await bus.nc.request(subjects.instance(worker.instance), "", { timeout: 2_000 });
    expect(inst.json()).toEqual({ worker: workerName, instance: worker.instance });
  });
});
