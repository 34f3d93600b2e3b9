// Behaviour of context propagation through message headers.
import { context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import { extractContext, idsOf, injectContext, registerPropagation, withIds } from "./propagation.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

describe("propagation", () => {
  it("carries ids as W3C baggage without any SDK (I15)", () => {
    const headers = new Map<string, string>();
    injectContext(headers, { sessionId: "s-1", messageId: "m 1", functionId: "a::b" }, ROOT_CONTEXT);
    expect([...headers.keys()]).toEqual(["baggage"]);
    expect(headers.get("baggage")).toBe("session.id=s-1,function.id=a%3A%3Ab");
    expect(idsOf(extractContext(headers))).toEqual({ sessionId: "s-1", functionId: "a::b" });
  });

  it("hands a trace on unchanged when telemetry is off (I15)", () => {
    const received = extractContext(new Map([["traceparent", traceparent]]));
    const span = trace.getTracer("test").startSpan("execute a::b", {}, received);
    const headers = new Map<string, string>();
    injectContext(headers, {}, trace.setSpan(received, span));
    expect(headers.get("traceparent")).toBe(traceparent);
  });

  it("keeps foreign baggage and replaces only the ids that are given", () => {
    const source = extractContext(new Map([["baggage", "tenant=acme,session.id=s-1,message.id=m-1"]]));
    const headers = new Map<string, string>();
    injectContext(headers, { messageId: "m-2" }, source);
    expect(headers.get("baggage")).toBe("tenant=acme,session.id=s-1,message.id=m-2");
  });

  it("ignores malformed headers", () => {
    const headers = new Map([
      ["traceparent", "nonsense"],
      ["baggage", ";;;=,"],
    ]);
    const received = extractContext(headers);
    expect(trace.getSpanContext(received)).toBeUndefined();
    expect(idsOf(received)).toEqual({});
  });

  it("follows async code once registered", async () => {
    registerPropagation();
    registerPropagation();
    const seen = await context.with(withIds(ROOT_CONTEXT, { sessionId: "s-1" }), async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return idsOf();
    });
    expect(seen).toEqual({ sessionId: "s-1" });
  });
});
