// The servers of tests: real ones, on their own port and store, gone with the test.
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { connectBus } from "@flotilla/bus";
import { createLogger } from "@flotilla/telemetry";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { startNats } from "./start-nats.ts";
import { startRedis } from "./start-redis.ts";

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("startNats", () => {
  it("keeps what was stored over a SIGKILL and a restart on the same port", async () => {
    await using nats = await startNats({ workers: ["extra"] });
    const options = { url: nats.urlFor("extra"), worker: "extra", instance: "e0" };
    const bus = await connectBus({ ...options, logger: createLogger({ level: "silent", name: "extra" }) });
    const name = await bus.blobs.put(Buffer.from("kept"));
    await bus.close();
    const [pid, port] = [nats.pid, nats.port];
    await nats.kill();
    expect(isAlive(pid)).toBe(false);
    await nats.restart();
    expect([nats.pid === pid, nats.port]).toEqual([false, port]);
    const again = await connectBus({ ...options, logger: createLogger({ level: "silent", name: "extra" }) });
    expect(Buffer.from(await again.blobs.get(name)).toString()).toBe("kept");
    await again.close();
  });

  it("leaves neither a process nor a file behind", async () => {
    const nats = await startNats({ withStreams: false });
    const { pid, credentialsFile } = nats;
    await nats.stop();
    expect([isAlive(pid), existsSync(dirname(credentialsFile))]).toEqual([false, false]);
    await nats.stop();
  });
});

describe("startRedis", () => {
  it("keeps what was stored over a restart on the same port, and is gone after stop", async () => {
    const redis = await startRedis();
    const client = new Redis(redis.url);
    await client.set("k", "v");
    await client.config("SET", "appendfsync", "always");
    await redis.restart();
    expect(await client.get("k")).toBe("v");
    client.disconnect();
    const { pid } = redis;
    await redis.stop();
    expect(isAlive(pid)).toBe(false);
  });
});
