// A call in a trace (I15): its span, the ids on it, and the context in the headers.
import { registerPropagation } from "@flotilla/telemetry";
import { startNats, until } from "@flotilla/testkit";
import { trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { expect, it } from "vitest";
import { busOf, rejection, serve } from "./support.ts";

it("has a client span with the session and message, and sends its context along", async () => {
  await using stack = new AsyncDisposableStack();
  const exporter = new InMemorySpanExporter();
  registerPropagation();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  const nats = stack.use(await startNats());
  const demo = await busOf(stack, nats, "demo");
  const orchestrator = await busOf(stack, nats, "turn-orchestrator");
  const traceparents: (string | undefined)[] = [];
  await serve(demo, "demo::echo", (_, message) => {
    traceparents.push(message.headers?.get("traceparent"));
    return {};
  });
  await until(() => orchestrator.registry.resolve("demo::echo")?.live, { what: "demo is live" });
  await orchestrator.callId("demo::echo", {}, { sessionId: "s1", messageId: "m1" });
  await rejection(orchestrator.callId("demo::none", {}, { sessionId: "s1" }));

  const [answered, failed] = exporter.getFinishedSpans();
  expect(answered?.name).toBe("call demo::echo");
  expect(answered?.attributes).toMatchObject({ "session.id": "s1", "message.id": "m1", "function.id": "demo::echo" });
  const { traceId, spanId } = answered?.spanContext() ?? {};
  expect(traceparents).toEqual([`00-${traceId}-${spanId}-01`]);
  expect([failed?.name, failed?.status.message]).toEqual(["call demo::none", "FUNCTION_NOT_FOUND"]);
});
