// Connecting: waiting for an absent server, refusing a wrong one, surviving its restart.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinary, freePort, startNats, until } from "@flotilla/testkit";
import { describe, expect, it } from "vitest";
import { connectBus, ensureStreams } from "../src/index.ts";
import { busOf, recordedLogger, rejection } from "./support.ts";

describe("connectBus", () => {
  it("waits for an absent server, says so, and gives up naming the address", async () => {
    const port = await freePort();
    const logger = recordedLogger();
    const url = `nats://u:topsecret@127.0.0.1:${port}`;
    const failed = await rejection(connectBus({ url, worker: "demo", instance: "d0", logger, connectTimeoutMs: 700 }));
    expect(failed).toMatchObject({ code: "BUS_UNAVAILABLE", message: expect.stringContaining(`127.0.0.1:${port}`) });
    expect(logger.lines.filter((line) => line.includes(`waiting for NATS at 127.0.0.1:${port}`))).toHaveLength(1);
    expect(JSON.stringify([failed, logger.lines])).not.toContain("topsecret");
  });

  it("connects as soon as the server is there", async () => {
    await using stack = new AsyncDisposableStack();
    const nats = stack.use(await startNats());
    await nats.kill();
    const logger = recordedLogger();
    const connecting = busOf(stack, nats, "demo", { logger });
    await until(() => logger.lines.length > 0, { what: "the notice" });
    await nats.restart();
    expect(await (await connecting).ping()).toBeGreaterThan(0);
  });

  it("refuses a wrong login at once", async () => {
    await using nats = await startNats();
    const options = { worker: "demo", instance: "d0", logger: recordedLogger(), user: "demo", password: "wrong" };
    const startedAt = performance.now();
    const failed = await rejection(connectBus({ ...options, url: nats.address }));
    expect(failed).toMatchObject({ code: "BUS_PERMISSION", message: expect.stringMatching(/login of demo/) });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  it("waits for streams that are created after it was started", async () => {
    await using stack = new AsyncDisposableStack();
    const nats = stack.use(await startNats({ withStreams: false }));
    const logger = recordedLogger();
    const connecting = busOf(stack, nats, "demo", { logger });
    await until(() => logger.lines.some((line) => line.includes("waiting for the streams")), { what: "the notice" });
    const { user, password } = nats.credentials.operator ?? { user: "", password: "" };
    const { connect } = await import("@nats-io/transport-node");
    const nc = await connect({ servers: `127.0.0.1:${nats.port}`, user, pass: password });
    stack.defer(() => nc.close());
    await ensureStreams(nc, { shards: 1 });
    expect((await connecting).connected).toBe(true);
  });

  it("refuses another number of shards than the stored one", async () => {
    await using stack = new AsyncDisposableStack();
    const nats = stack.use(await startNats({ shards: 2 }));
    expect(await rejection(busOf(stack, nats, "demo", { shards: 1 }))).toMatchObject({ code: "STREAM_MISMATCH" });
    expect((await busOf(stack, nats, "demo")).journal.shards).toBe(2);
  });

  it("refuses a server whose messages are too small", async () => {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "flotilla-small-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const port = await freePort();
    await writeFile(join(folder, "nats.conf"), `port: ${port}\nmax_payload: 1MB\n`);
    const child = spawn(findBinary("nats-server") ?? "nats-server", ["-c", join(folder, "nats.conf")], {
      stdio: "ignore",
    });
    stack.defer(() => void child.kill("SIGKILL"));
    const options = { url: `nats://127.0.0.1:${port}`, worker: "demo", instance: "d0", logger: recordedLogger() };
    const failed = await rejection(connectBus(options));
    expect(failed).toMatchObject({ code: "CONFIG_INVALID", message: expect.stringContaining("max_payload") });
  });
});

describe("a connected bus", () => {
  it("is back after a SIGKILL of the server, and tells who asked (field: dapr/dapr#10337)", async () => {
    await using stack = new AsyncDisposableStack();
    const nats = stack.use(await startNats());
    const bus = await busOf(stack, nats, "demo");
    let reconnects = 0;
    bus.onReconnect(() => {
      reconnects += 1;
    });
    await nats.kill();
    await until(() => !bus.connected, { what: "the loss is noticed" });
    expect(await rejection(bus.ping(100))).toMatchObject({ code: "BUS_UNAVAILABLE" });
    await nats.restart();
    await until(() => bus.connected && reconnects === 1, { what: "the connection is back" });
    expect(await bus.ping()).toBeLessThan(2_000);
  });

  it("notices a frozen server by a real round trip, and recovers when it thaws", async () => {
    await using stack = new AsyncDisposableStack();
    const nats = stack.use(await startNats());
    const bus = await busOf(stack, nats, "demo");
    await nats.freeze();
    expect(await rejection(bus.ping(200))).toMatchObject({ code: "BUS_UNAVAILABLE" });
    await nats.thaw();
    await until(() => bus.ping(500), { what: "an answer after the thaw" });
  });

  it("can be closed twice, also while the server is away", async () => {
    await using stack = new AsyncDisposableStack();
    const nats = stack.use(await startNats());
    const bus = await busOf(stack, nats, "demo");
    await nats.kill();
    await until(() => !bus.connected, { what: "the loss is noticed" });
    await Promise.all([bus.close(), bus.close()]);
    expect(bus.nc.isClosed()).toBe(true);
  });
});
