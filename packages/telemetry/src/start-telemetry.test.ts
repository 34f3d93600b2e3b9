// Behaviour of tracing against a real gRPC collector, and with none.

import { Server, ServerCredentials } from "@grpc/grpc-js";
import { trace } from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import { createLogger } from "./logger.ts";
import { isTracing } from "./propagation.ts";
import { startTelemetry } from "./start-telemetry.ts";

const bytes = { serialize: (value: Buffer) => value, deserialize: (value: Buffer) => value };
const service = {
  export: {
    path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes.serialize,
    requestDeserialize: bytes.deserialize,
    responseSerialize: bytes.serialize,
    responseDeserialize: bytes.deserialize,
  },
} as const;

async function startCollector() {
  const requests: Buffer[] = [];
  const server = new Server();
  server.addService(service, {
    export: (call: { request: Buffer }, reply: (error: null, value: Buffer) => void) => {
      requests.push(call.request);
      reply(null, Buffer.alloc(0));
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { requests, url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => server.forceShutdown() };
}

describe("startTelemetry", () => {
  it("records nothing and loads no SDK without an endpoint (I15)", async () => {
    const telemetry = await startTelemetry({ serviceName: "w", version: "1", env: {} });
    expect(telemetry.isExporting).toBe(false);
    expect(isTracing()).toBe(false);
    expect(trace.getTracer("t").startSpan("x").isRecording()).toBe(false);
    await telemetry.shutdown();
  });

  it("flushes spans to the collector at shutdown (field: kagent-dev/kagent PR#2176)", async () => {
    using collector = await startCollector();
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const telemetry = await startTelemetry({ serviceName: "worker-x", version: "1", env });
    trace
      .getTracer("t")
      .startSpan("execute a::b", { attributes: { "session.id": "s-77" } })
      .end();
    await telemetry.shutdown();
    const sent = Buffer.concat(collector.requests).toString("latin1");
    expect(sent).toContain("execute a::b");
    expect(sent).toContain("s-77");
    expect(sent).toContain("worker-x");
  });

  it("says so and goes on when the collector cannot be reached (I15)", async () => {
    trace.disable();
    const lines: string[] = [];
    const logger = createLogger({ level: "warn", name: "w", destination: { write: (line) => lines.push(line) } });
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" };
    const telemetry = await startTelemetry({ serviceName: "w", version: "1", env, logger });
    trace.getTracer("t").startSpan("x").end();
    const started = performance.now();
    await telemetry.shutdown(300);
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(lines.join()).toContain("the last spans could not be flushed");
  });
});
