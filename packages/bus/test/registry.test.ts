// The live registry against a real server: joining, leaving, foreign writers, outages.
import { FunctionManifest, subjects, timings } from "@flotilla/contracts";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Bus } from "../src/index.ts";
import { busOf, recordedLogger, serve } from "./support.ts";

let nats: StartedNats;
let admin: Bus;
let stack: AsyncDisposableStack;
const suite = new AsyncDisposableStack();
beforeAll(async () => {
  nats = suite.use(await startNats({ workers: ["shop", "shop-swap"] }));
  admin = await busOf(suite, nats, "operator", { instance: "admin" });
});
beforeEach(async () => {
  stack = new AsyncDisposableStack();
  await until(() => admin.jsm.streams.purge("KV_REGISTRY"), { what: "an empty registry" });
});
afterEach(() => stack.disposeAsync());
afterAll(() => suite.disposeAsync());

const echo = (request: unknown): unknown => request;

function manifestOf(worker: string, id: string, version = "1.0.0") {
  return { worker, version, priority: 0, functions: [FunctionManifest.parse({ id })], meta: {} };
}

async function storedSeq(bus: Bus, worker: string): Promise<number> {
  const found = await bus.jsm.direct.getMessage("KV_REGISTRY", { last_by_subj: subjects.registryWorker(worker) });
  return found?.seq ?? 0;
}

describe("a worker's own entry", () => {
  it("keeps first_registered_at over a restart and a new version, and is not written again when nothing changed", async () => {
    const first = await busOf(stack, nats, "shop", { instance: "s0" });
    await first.registry.register(manifestOf("shop", "shop::sell"));
    const seq = await storedSeq(first, "shop");
    const second = await busOf(stack, nats, "shop", { instance: "s1" });
    await second.registry.register(manifestOf("shop", "shop::sell"));
    expect(await storedSeq(first, "shop")).toBe(seq);
    const before = first.registry.resolve("shop::sell")?.manifest.first_registered_at;
    await second.registry.register(manifestOf("shop", "shop::sell", "2.0.0"));
    await until(() => first.registry.resolve("shop::sell")?.manifest.version === "2.0.0", { what: "the new version" });
    expect(first.registry.resolve("shop::sell")?.manifest.first_registered_at).toBe(before);
  });

  it("survives replicas that register at the same time", async () => {
    const replicas = await Promise.all([0, 1, 2, 3].map((n) => busOf(stack, nats, "shop", { instance: `s${n}` })));
    await Promise.all(replicas.map((bus) => bus.registry.register(manifestOf("shop", "shop::sell"))));
    const [one] = replicas;
    await until(() => one?.registry.workers()[0]?.instances.length === 4, { what: "four instances" });
  });

  it("is gone at once when it leaves, while its manifest stays", async () => {
    const shop = await busOf(stack, nats, "shop");
    const other = await busOf(stack, nats, "demo");
    await shop.registry.register(manifestOf("shop", "shop::sell"));
    await until(() => other.registry.isInstanceLive("shop", "shop-0"), { what: "shop is seen" });
    await shop.registry.leave();
    await until(() => !other.registry.isInstanceLive("shop", "shop-0"), { what: "shop has left", timeoutMs: 2_000 });
    expect(other.registry.resolve("shop::sell")).toMatchObject({ worker: "shop", live: false });
    const late = await busOf(stack, nats, "policy");
    expect(late.registry.resolve("shop::sell")).toMatchObject({ worker: "shop", live: false });
  });

  it("cannot be written for another worker", async () => {
    const shop = await busOf(stack, nats, "shop");
    await expect(shop.registry.register(manifestOf("policy", "policy::check_permissions"))).rejects.toMatchObject({
      code: "BUS_PERMISSION",
    });
  });
});

describe("a foreign worker that writes with a plain key-value client", () => {
  it("joins without a TTL and without optional fields, and leaves by deleting its key", async () => {
    const operator = await busOf(stack, nats, "operator");
    const watcher = await busOf(stack, nats, "demo");
    const kv = await new Kvm(jetstream(operator.nc)).open("REGISTRY");
    await kv.put("worker.shop", JSON.stringify({ functions: [{ id: "shop::sell" }] }));
    await kv.put("inst.shop.py-1", "{}");
    await until(() => watcher.registry.resolve("shop::sell")?.live, { what: "the foreign worker is live" });
    const late = await busOf(stack, nats, "policy");
    expect(late.registry.resolve("shop::sell")).toMatchObject({ worker: "shop", live: true });
    await kv.delete("inst.shop.py-1");
    await until(() => watcher.registry.resolve("shop::sell")?.live === false, { what: "it has left" });
    await kv.delete("worker.shop");
    await until(() => watcher.registry.resolve("shop::sell") === null, { what: "its manifest is gone" });
  });

  it("is ignored with a warning when what it wrote cannot be read", async () => {
    const operator = await busOf(stack, nats, "operator");
    const logger = recordedLogger();
    const watcher = await busOf(stack, nats, "demo", { logger });
    await operator.js.publish("$KV.REGISTRY.worker.shop", "{oops");
    await operator.js.publish("$KV.REGISTRY.inst.shop.i1", "[]");
    const warned = (): boolean => logger.lines.filter((line) => line.startsWith("warn")).length === 2;
    await until(warned, { what: "two warnings" });
    expect(watcher.registry.workers()).toEqual([]);
  });

  it("gets no calls for a namespace it has no grant for", async () => {
    const logger = recordedLogger();
    const watcher = await busOf(stack, nats, "demo", { logger });
    const shop = await busOf(stack, nats, "shop");
    await shop.registry.register(manifestOf("shop", "policy::check_permissions"));
    await until(() => logger.lines.some((line) => line.includes("without a grant")), { what: "the warning" });
    expect(watcher.registry.resolve("policy::check_permissions")).toBeNull();
  });
});

describe("routing", () => {
  it("moves to the worker that was first registered last, and back when it leaves", async () => {
    const caller = await busOf(stack, nats, "operator");
    const base = await busOf(stack, nats, "shop");
    await serve(base, "shop::sell", echo);
    const swap = await busOf(stack, nats, "shop-swap");
    await serve(swap, "shop::sell", echo);
    const target = (): string | undefined => caller.registry.resolve("shop::sell")?.worker;
    await until(() => target() === "shop-swap", { what: "the newer worker wins" });
    await swap.registry.leave();
    await until(() => target() === "shop", { what: "the older one serves again" });
  });
});

describe("an outage of the bus", () => {
  it("never empties the table, and loses nobody afterwards", async () => {
    const watcher = await busOf(stack, nats, "demo");
    const shop = await busOf(stack, nats, "shop");
    await serve(shop, "shop::sell", echo);
    await until(() => watcher.registry.resolve("shop::sell")?.live, { what: "shop is live" });
    await nats.kill();
    await until(() => !watcher.connected, { what: "the loss is noticed" });
    expect(watcher.registry.resolve("shop::sell")?.live).toBe(true);
    let wasEmpty = false;
    watcher.onReconnect(() => {
      wasEmpty ||= watcher.registry.resolve("shop::sell")?.live !== true;
    });
    await nats.restart();
    await until(() => watcher.connected && shop.connected, { what: "both are back" });
    await watcher.registry.changed(5_000);
    expect(watcher.registry.resolve("shop::sell")?.live).toBe(true);
    expect(wasEmpty).toBe(false);
  });

  it("writes the manifest again when the registry was lost meanwhile", async () => {
    const shop = await busOf(stack, nats, "shop");
    const operator = await busOf(stack, nats, "operator");
    await shop.registry.register(manifestOf("shop", "shop::sell"));
    await operator.jsm.streams.purge("KV_REGISTRY");
    await nats.restart();
    await until(async () => shop.connected && (await storedSeq(shop, "shop")) > 0, { what: "the manifest is back" });
  });
});

describe("silence", () => {
  it("drops an instance by the watcher's own clock, without any goodbye", async () => {
    const operator = await busOf(stack, nats, "operator");
    const watcher = await busOf(stack, nats, "demo");
    await operator.js.publish(subjects.registryWorker("shop"), JSON.stringify(manifestOf("shop", "shop::sell")));
    await operator.js.publish(subjects.registryInstance("shop", "dead"), "{}");
    await until(() => watcher.registry.resolve("shop::sell")?.live, { what: "shop is live" });
    // Others are heard all the time; only the silent one is dropped.
    const beat = setInterval(() => void operator.js.publish("$KV.REGISTRY.inst.shop.alive", "{}"), 500);
    stack.defer(() => clearInterval(beat));
    await until(() => !watcher.registry.isInstanceLive("shop", "dead"), {
      what: "the silent instance is dropped",
      timeoutMs: timings.instanceTtlMs + 4_000,
    });
    expect(watcher.registry.isInstanceLive("shop", "alive")).toBe(true);
  });
});
