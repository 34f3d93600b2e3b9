// The connection under loss, freezes and failover.
import { startRedis, until } from "@flotilla/testkit";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { openConnection } from "../src/connection.ts";
import { connectState } from "../src/index.ts";
import { silent } from "./support.ts";

describe("the Redis connection", () => {
  it("fails fast with STORE_UNAVAILABLE while Redis is away and is usable again when it is back", async () => {
    await using redis = await startRedis();
    const state = connectState({ url: redis.url, logger: silent });
    await until(() => state.ping(), { what: "the first ping" });
    await redis.kill("SIGKILL");
    await until(() => !state.connected, { what: "the loss is noticed" });
    const start = performance.now();
    await expect(state.ping()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE", disposition: "retry" });
    expect(performance.now() - start).toBeLessThan(500);
    await redis.restart();
    await until(() => state.ping(), { what: "redis is back" });
    await state.close();
  });

  it("answers within its command timeout when Redis hangs, and recovers by itself (field: taskforcesh/bullmq#4378)", async () => {
    await using redis = await startRedis();
    const state = connectState({ url: redis.url, logger: silent, commandTimeoutMs: 300 });
    await until(() => state.ping(), { what: "the first ping" });
    process.kill(redis.pid, "SIGSTOP");
    try {
      await expect(state.ping()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      // A silent socket is torn down: the client does not go on trusting it.
      await until(() => !state.connected, { what: "the silent socket is given up", timeoutMs: 15_000 });
    } finally {
      process.kill(redis.pid, "SIGCONT");
    }
    await until(() => state.ping(), { what: "redis answers again", timeoutMs: 15_000 });
    await state.close();
  });

  it("starts a client again that has come to its end (field: redis/ioredis#1835)", async () => {
    await using redis = await startRedis();
    const connection = openConnection({ url: redis.url, logger: silent });
    await until(() => connection.isReady, { what: "redis is connected" });
    connection.redis.disconnect(false);
    await until(() => connection.redis.status === "end", { what: "the client ended" });
    await until(() => connection.isReady, { what: "the client was started again" });
    await connection.close();
    expect(connection.redis.status).toBe("end");
  });

  it("connects anew after READONLY, as a failover demands (field: taskforcesh/bullmq#3088)", async () => {
    await using redis = await startRedis();
    const connection = openConnection({ url: redis.url, logger: silent });
    await until(() => connection.isReady, { what: "redis is connected" });
    const admin = new Redis(redis.url);
    const closed = new Promise<void>((resolve) => connection.redis.once("close", () => resolve()));
    await admin.replicaof("127.0.0.1", "1");
    await expect(connection.run((client) => client.set("k", "v"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await closed;
    await admin.replicaof("NO", "ONE");
    await until(() => connection.run((client) => client.set("k", "v")), { what: "writes work again" });
    admin.disconnect();
    await connection.close();
  });

  it("returns at once when Redis is not there at start, and connects when it comes", async () => {
    await using redis = await startRedis();
    await redis.kill("SIGKILL");
    const state = connectState({ url: redis.url, logger: silent });
    expect(state.connected).toBe(false);
    let ready = 0;
    state.onReady(() => {
      ready += 1;
    });
    await redis.restart();
    await until(() => ready === 1 && state.connected, { what: "redis is connected" });
    await state.close();
  });

  it("closes at once in whatever state it is", async () => {
    await using redis = await startRedis();
    for (const moment of ["connecting", "ready", "reconnecting"] as const) {
      const connection = openConnection({ url: redis.url, logger: silent });
      if (moment !== "connecting") await until(() => connection.isReady, { what: "redis is connected" });
      if (moment === "reconnecting") {
        await redis.kill("SIGKILL");
        await until(() => connection.redis.status === "reconnecting", {
          what: "the client waits to connect",
          intervalMs: 1,
        });
      }
      expect(connection.redis.status).toBe(moment);
      const start = performance.now();
      await connection.close();
      expect(performance.now() - start).toBeLessThan(1_000);
    }
    await redis.restart();
  });
});
