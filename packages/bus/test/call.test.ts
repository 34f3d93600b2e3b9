// Calls against real workers: values, typed errors, deadlines, cancellation, routing, outages.
import { defineFunction, FunctionManifest, headerNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import type { Msg } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Bus } from "../src/index.ts";
import { type Answer, answerCalls, busOf, rejection, type ServeOptions, serve } from "./support.ts";

const sell = defineFunction({
  id: "shop::sell",
  description: "Sells something.",
  request: z.object({ item: z.string() }),
  response: z.object({ price: z.number() }),
});

let nats: StartedNats;
let stack: AsyncDisposableStack;
let admin: Bus;
let caller: Bus;
let shop: Bus;
const suite = new AsyncDisposableStack();
beforeAll(async () => {
  nats = suite.use(await startNats({ workers: ["shop", "shop-swap"] }));
  admin = await busOf(suite, nats, "operator", { instance: "admin" });
});
beforeEach(async () => {
  stack = new AsyncDisposableStack();
  await until(() => admin.jsm.streams.purge("KV_REGISTRY"), { what: "an empty registry" });
  caller = await busOf(stack, nats, "operator");
  shop = await busOf(stack, nats, "shop");
});
afterEach(() => stack.disposeAsync());
afterAll(() => suite.disposeAsync());

async function serveShop(answer: Answer, options?: ServeOptions): Promise<void> {
  await serve(shop, "shop::sell", answer, options);
  await until(() => caller.registry.resolve("shop::sell")?.live, { what: "shop is live" });
}

/** Promises that wait for each other, by the message that arrived. */
function arrivals(): { answer: Answer; messages: Msg[] } {
  const messages: Msg[] = [];
  return { messages, answer: (_, message) => void messages.push(message) };
}

describe("a call", () => {
  it("answers the value, checked against the contract", async () => {
    await serveShop(() => ({ price: 3, extra: true }));
    expect(await caller.call(sell, { item: "tea" })).toEqual({ price: 3 });
  });

  it("is INTERNAL when the answer does not fit the contract or is not JSON", async () => {
    let answer = '{"price":"three"}';
    await serveShop((_, message) => void message.respond(answer));
    expect(await rejection(caller.call(sell, { item: "tea" }))).toMatchObject({ code: "INTERNAL" });
    answer = "<html>";
    expect(await rejection(caller.callId("shop::sell", {}))).toMatchObject({ code: "INTERNAL" });
  });

  it("carries the caller, the time left, the effect's key and the ids", async () => {
    const seen: Record<string, string> = {};
    await serveShop((_, message) => {
      for (const key of message.headers?.keys() ?? []) seen[key] = message.headers?.get(key) ?? "";
      return {};
    });
    await caller.callId(
      "shop::sell",
      {},
      {
        timeoutMs: 4_000,
        idempotencyKey: "shop.s1.t1.1.t0.1",
        epoch: 3,
        attempt: 2,
        workspace: "w1",
        sessionId: "s1",
        messageId: "m1",
        reclaim: 7,
        digest: "sha256:x",
      },
    );
    expect(seen).toMatchObject({
      [headerNames.caller]: "operator",
      [headerNames.idempotencyKey]: "shop.s1.t1.1.t0.1",
      [headerNames.epoch]: "3",
      [headerNames.attempt]: "2",
      [headerNames.workspace]: "w1",
      [headerNames.reclaim]: "7",
      [headerNames.digest]: "sha256:x",
    });
    expect(Number(seen[headerNames.timeoutMs])).toBeGreaterThan(3_000);
    expect(Number(seen[headerNames.timeoutMs])).toBeLessThanOrEqual(4_000);
    for (const id of ["session.id=s1", "message.id=m1", "function.id=shop%3A%3Asell"])
      expect(seen.baggage).toContain(id);
  });

  it("turns an error reply into the typed error that was sent", async () => {
    const details = { status: "denied" };
    await serveShop(() => {
      throw Object.assign(new FlotillaError("SESSION_BUSY", "busy"), { field: "item", retry_after_ms: 50, details });
    });
    expect(await rejection(caller.callId("shop::sell", {}))).toEqual({
      code: "SESSION_BUSY",
      message: "busy",
      field: "item",
      retryAfterMs: 50,
      details,
    });
  });

  it("takes from a foreign error reply only what has the right type", async () => {
    const { headers } = await import("@nats-io/transport-node");
    await serveShop((_, message) => {
      const sent = headers();
      sent.set(headerNames.errorCode, "SHOP_CLOSED");
      sent.set(headerNames.errorMessage, "closed");
      message.respond('{"message":5,"field":[],"retry_after_ms":"soon"}', { headers: sent });
    });
    expect(await rejection(caller.callId("shop::sell", {}))).toEqual({ code: "SHOP_CLOSED", message: "closed" });
  });

  it("ends with TIMEOUT at its deadline and with CANCELLED at once when it is aborted", async () => {
    await serveShop(() => undefined);
    expect(await rejection(caller.callId("shop::sell", {}, { timeoutMs: 150 }))).toMatchObject({ code: "TIMEOUT" });
    const abort = new AbortController();
    const running = rejection(caller.callId("shop::sell", {}, { timeoutMs: 20_000, signal: abort.signal }));
    abort.abort();
    expect(await running).toMatchObject({ code: "CANCELLED" });
    const again = rejection(caller.callId("shop::sell", {}, { signal: abort.signal }));
    expect(await again).toMatchObject({ code: "CANCELLED" });
  });

  it("carries bodies larger than half of a message, there and back", async () => {
    await serveShop((request) => request);
    const text = "ä".repeat(6_000_000);
    expect(await caller.callId("shop::sell", { text }, { timeoutMs: 15_000 })).toEqual({ text });
  });

  it("refuses a payload that cannot be written as JSON", async () => {
    await serveShop(() => ({}));
    expect(await rejection(caller.callId("shop::sell", { n: 1n }))).toMatchObject({ code: "INVALID_INPUT" });
  });
});

describe("routing a call", () => {
  it("fails at once with a hint when no manifest offers the function", async () => {
    await serveShop(() => ({}));
    expect(await rejection(caller.callId("shop::sel", {}, { timeoutMs: 20_000 }))).toMatchObject({
      code: "FUNCTION_NOT_FOUND",
      field: "function_id",
      message: expect.stringContaining("did you mean shop::sell?"),
      details: { did_you_mean: "shop::sell" },
    });
  });

  it("waits for a worker that is known but not live, and calls it when it comes", async () => {
    await serveShop(() => ({ price: 1 }));
    await shop.registry.leave();
    await until(() => caller.registry.resolve("shop::sell")?.live === false, { what: "shop has left" });
    const calling = caller.callId("shop::sell", {}, { timeoutMs: 10_000 });
    const back = await busOf(stack, nats, "shop", { instance: "shop-1" });
    await serve(back, "shop::sell", () => ({ price: 2 }));
    expect(await calling).toMatchObject({ price: expect.any(Number) });
  });

  it("ends with WORKER_UNAVAILABLE when nobody comes before the deadline", async () => {
    await serveShop(() => ({}));
    await shop.registry.leave();
    await until(() => caller.registry.resolve("shop::sell")?.live === false, { what: "shop has left" });
    const failed = await rejection(caller.callId("shop::sell", {}, { timeoutMs: 200 }));
    expect(failed).toMatchObject({ code: "WORKER_UNAVAILABLE", retryAfterMs: 1_000 });
  });

  it("tries the next worker when the first one died without a goodbye", async () => {
    await serveShop(() => ({ by: "shop" }));
    const swap = await busOf(stack, nats, "shop-swap");
    await serve(swap, "shop::sell", () => ({ by: "shop-swap" }), { priority: 100 });
    await until(() => caller.registry.resolve("shop::sell")?.worker === "shop-swap", { what: "the swap wins" });
    expect(await caller.callId("shop::sell", {})).toEqual({ by: "shop-swap" });
    await swap.nc.close();
    // Past the moment after a connect in which workers are given time to subscribe again.
    const answer = await caller.callId("shop::sell", {}, { timeoutMs: 8_000 });
    expect(answer).toEqual({ by: "shop" });
    expect(caller.registry.resolve("shop::sell")?.worker).toBe("shop");
  });

  it("sends to the worker that is named, and only for what it offers", async () => {
    await serveShop(() => ({ by: "shop" }));
    const swap = await busOf(stack, nats, "shop-swap");
    await serve(swap, "shop::sell", () => ({ by: "shop-swap" }), { priority: 100 });
    await until(() => caller.registry.resolve("shop::sell")?.worker === "shop-swap", { what: "the swap wins" });
    expect(await caller.callId("shop::sell", {}, { worker: "shop" })).toEqual({ by: "shop" });
    const failed = rejection(caller.callId("shop::buy", {}, { worker: "shop" }));
    expect(await failed).toMatchObject({ code: "FUNCTION_NOT_FOUND", message: expect.stringContaining("worker shop") });
  });

  it("shares the load between replicas", async () => {
    await serveShop(() => ({ by: 0 }));
    const replica = await busOf(stack, nats, "shop", { instance: "shop-1" });
    await answerCalls(replica, "shop::sell", () => ({ by: 1 }));
    const answers = await Promise.all(Array.from({ length: 60 }, () => caller.callId("shop::sell", {})));
    expect(new Set(answers.map((answer) => (answer as { by: number }).by))).toEqual(new Set([0, 1]));
  });

  it("is BUS_PERMISSION at once when the bus user may not call the function", async () => {
    await serveShop(() => ({}));
    const policy = await busOf(stack, nats, "policy");
    await until(() => policy.registry.resolve("shop::sell")?.live, { what: "policy sees shop" });
    const startedAt = performance.now();
    const failed = await rejection(policy.callId("shop::sell", {}, { timeoutMs: 10_000 }));
    expect(failed).toMatchObject({ code: "BUS_PERMISSION" });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});

describe("a call during an outage of the bus", () => {
  it("is sent again after the reconnect when it may be: replay safe, or with a key (I4)", async () => {
    const { answer, messages } = arrivals();
    await serveShop(answer, { replay: "safe" });
    const calling = caller.callId("shop::sell", {}, { timeoutMs: 20_000 });
    await until(() => messages.length === 1, { what: "the first request" });
    await nats.restart();
    await until(() => messages.length === 2, { what: "the same request again", timeoutMs: 15_000 });
    messages[1]?.respond('{"again":true}');
    expect(await calling).toEqual({ again: true });
  });

  it("with an idempotency key carries the same key again", async () => {
    const { answer, messages } = arrivals();
    await serveShop(answer, { replay: "never" });
    const calling = caller.callId("shop::sell", {}, { timeoutMs: 20_000, idempotencyKey: "shop.s.t.1.t0.1" });
    await until(() => messages.length === 1, { what: "the first request" });
    await nats.restart();
    await until(() => messages.length === 2, { what: "the same request again", timeoutMs: 15_000 });
    messages[1]?.respond("{}");
    await calling;
    const keys = messages.map((message) => message.headers?.get(headerNames.idempotencyKey));
    expect(keys).toEqual(["shop.s.t.1.t0.1", "shop.s.t.1.t0.1"]);
  });

  it("otherwise is sent once, still takes the late answer, and is BUS_UNAVAILABLE at its deadline without one", async () => {
    const { answer, messages } = arrivals();
    await serveShop(answer, { replay: "never" });
    const answered = caller.callId("shop::sell", { n: 1 }, { timeoutMs: 20_000 });
    const unanswered = rejection(caller.callId("shop::sell", { n: 2 }, { timeoutMs: 3_000 }));
    await until(() => messages.length === 2, { what: "both requests" });
    await nats.restart();
    await until(() => shop.connected && caller.connected, { what: "both are back" });
    const first = messages.find((message) => message.json<{ n: number }>().n === 1);
    caller.nc.publish(first?.reply ?? "", '{"late":true}');
    expect(await unanswered).toMatchObject({ code: "BUS_UNAVAILABLE" });
    expect(await answered.catch((error: unknown) => error)).toEqual({ late: true });
    expect(messages).toHaveLength(2);
  });

  it("that begins while the bus is away waits for it within its deadline", async () => {
    await serveShop(() => ({ price: 1 }));
    await nats.kill();
    await until(() => !caller.connected, { what: "the loss is noticed" });
    const failed = rejection(caller.callId("shop::sell", {}, { timeoutMs: 100 }));
    expect(await failed).toMatchObject({ code: "BUS_UNAVAILABLE" });
    const calling = caller.callId("shop::sell", {}, { timeoutMs: 15_000 });
    await nats.restart();
    expect(await calling).toEqual({ price: 1 });
  });

  it("does not go to a worker of lower precedence only because the first one is slow to come back", async () => {
    await serveShop(() => ({ by: "shop" }));
    const swap = await busOf(stack, nats, "shop-swap");
    const functions = [FunctionManifest.parse({ id: "shop::sell", replay: "safe" })];
    await swap.registry.register({ worker: "shop-swap", version: "1.0.0", priority: 100, functions, meta: {} });
    await until(() => caller.registry.resolve("shop::sell")?.worker === "shop-swap", { what: "the swap wins" });
    await nats.restart();
    await until(() => caller.connected && swap.connected && shop.connected, { what: "all are back" });
    const calling = caller.callId("shop::sell", {}, { timeoutMs: 10_000 });
    await caller.ping();
    await caller.ping();
    await answerCalls(swap, "shop::sell", () => ({ by: "shop-swap" }));
    expect(await calling).toEqual({ by: "shop-swap" });
  });
});

it("subjects of calls are built from the worker and the id", () => {
  expect(subjects.call("shop", "shop::sell")).toBe("fn.shop.shop.sell");
});
