// The span of a call: its name, parent and attributes, and that nothing is made while nobody traces.
import { FlotillaError } from "@flotilla/errors";
import { createLogger } from "@flotilla/telemetry";
import { headers as natsHeaders } from "@nats-io/transport-node";
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { Registry } from "prom-client";
import { afterEach, describe, expect, it } from "vitest";
import { echo } from "../test/support.ts";
import { createCallMetrics } from "./call-metrics.ts";
import { FunctionStats } from "./discovery.ts";
import { readInvocation } from "./invocation.ts";
import { observeCall } from "./observe.ts";

afterEach(() => trace.disable());

const traceId = "0af7651916cd43dd8448eb211c80319c";

function anObserved() {
  const metrics = createCallMetrics(new Registry(), "w").of(echo.id);
  const logger = createLogger({ level: "silent", name: "w" });
  return { worker: "w", instance: "w-1", functionId: echo.id, logger, metrics, stats: new FunctionStats() };
}

function anInvocation() {
  const headers = natsHeaders();
  headers.set("traceparent", `00-${traceId}-b7ad6b7169203331-01`);
  headers.set("baggage", "session.id=s-1,message.id=m-1");
  return readInvocation(echo, headers, Date.now());
}

describe("observeCall", () => {
  it("makes one server span in the caller's trace with session.id and message.id (I15)", () => {
    const exporter = new InMemorySpanExporter();
    const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    trace.setGlobalTracerProvider(provider);
    const observation = observeCall(anObserved(), anInvocation());
    expect(trace.getSpanContext(observation.context)?.traceId).toBe(traceId);
    observation.end(new FlotillaError("NOT_FOUND", "hunter2"));
    const [span] = exporter.getFinishedSpans();
    expect(span?.name).toBe("execute probe::echo");
    expect(span?.spanContext().traceId).toBe(traceId);
    expect(span?.attributes).toMatchObject({
      "session.id": "s-1",
      "message.id": "m-1",
      "function.id": "probe::echo",
      "flotilla.worker": "w",
      "flotilla.code": "NOT_FOUND",
    });
    expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, message: "NOT_FOUND" });
    expect(JSON.stringify(span?.events)).not.toContain("hunter2");
  });

  it("makes no span while telemetry is off and hands the caller's trace on (I15)", () => {
    const invocation = anInvocation();
    const observation = observeCall(anObserved(), invocation);
    expect(observation.context).toBe(invocation.parent);
    expect(trace.getSpanContext(context.active())).toBeUndefined();
    observation.end();
  });
});
