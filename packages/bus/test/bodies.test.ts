// Bodies in the object store: stored once, read back whole, also over a restart of the server (I1).
import { bucketNames, sha256Hex } from "@flotilla/contracts";
import { type StartedNats, startNats } from "@flotilla/testkit";
import { jetstream } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { busOf, rejection } from "./support.ts";

let nats: StartedNats;
let stack: AsyncDisposableStack;
beforeAll(async () => {
  nats = await startNats();
});
beforeEach(() => {
  stack = new AsyncDisposableStack();
});
afterEach(() => stack.disposeAsync());
afterAll(() => nats.stop());

const bytesOf = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 31 + seed) % 251);

describe("blobs", () => {
  it.each([0, 1, 524_288, 524_289, 3_000_001])("of %d bytes come back whole to another worker", async (length) => {
    const writer = await busOf(stack, nats, "turn-orchestrator");
    const reader = await busOf(stack, nats, "harness");
    const data = bytesOf(length, 7);
    const name = await writer.blobs.put(data);
    expect(name).toBe(sha256Hex(data));
    expect(sha256Hex(await reader.blobs.get(name))).toBe(name);
  });

  it("are stored once, however often and by however many they are put", async () => {
    const writers = await Promise.all(["demo", "session", "harness"].map((worker) => busOf(stack, nats, worker)));
    const operator = await busOf(stack, nats, "operator");
    const data = bytesOf(100_000, 9);
    for (const bus of writers) await bus.blobs.put(data);
    const before = (await operator.jsm.streams.info("OBJ_BLOB")).state.messages;
    for (const bus of writers) await bus.blobs.put(data.slice());
    const late = await busOf(stack, nats, "demo", { instance: "demo-1" });
    await late.blobs.put(data);
    expect((await operator.jsm.streams.info("OBJ_BLOB")).state.messages).toBe(before);
  });

  it("put by several at the same time stay readable", async () => {
    const writers = await Promise.all(["demo", "session", "harness"].map((worker) => busOf(stack, nats, worker)));
    const data = bytesOf(700_000, 11);
    const names = await Promise.all(writers.map((bus) => bus.blobs.put(data)));
    const reader = await busOf(stack, nats, "policy");
    expect(sha256Hex(await reader.blobs.get(names[0] ?? ""))).toBe(names[2]);
  });

  it("survive a SIGKILL of the server, and a put that met it goes on afterwards", async () => {
    const writer = await busOf(stack, nats, "turn-orchestrator");
    const reader = await busOf(stack, nats, "harness");
    const first = await writer.blobs.put(bytesOf(600_000, 13));
    await nats.kill();
    const putting = writer.blobs.put(bytesOf(600_000, 17));
    const getting = reader.blobs.get(first);
    await nats.restart();
    expect(sha256Hex(await getting)).toBe(first);
    expect(sha256Hex(await reader.blobs.get(await putting))).toBe(await putting);
  });

  it("can be read with the object store's own client", async () => {
    const writer = await busOf(stack, nats, "demo");
    const operator = await busOf(stack, nats, "operator");
    const data = bytesOf(600_000, 19);
    const name = await writer.blobs.put(data);
    const bucket = await new Objm(jetstream(operator.nc)).open(bucketNames.blob);
    expect(sha256Hex((await bucket.getBlob(name)) ?? new Uint8Array())).toBe(name);
  });

  it("that do not exist are NOT_FOUND, and one whose chunks were damaged is refused", async () => {
    const bus = await busOf(stack, nats, "demo");
    const operator = await busOf(stack, nats, "operator");
    expect(await rejection(bus.blobs.get("0".repeat(64)))).toMatchObject({ code: "NOT_FOUND" });
    const name = await bus.blobs.put(bytesOf(10, 23));
    await operator.jsm.streams.purge("OBJ_BLOB", { filter: "$O.BLOB.C.>" });
    const reader = await busOf(stack, nats, "policy");
    expect(await rejection(reader.blobs.get(name))).toMatchObject({ code: "INTERNAL" });
  });

  it("hold JSON under a reference", async () => {
    const bus = await busOf(stack, nats, "demo");
    const ref = await bus.blobs.putJson({ text: "ü" });
    expect(ref).toEqual({ $blob: sha256Hex('{"text":"ü"}'), bytes: 13 });
    expect(await bus.blobs.getJson(ref)).toEqual({ text: "ü" });
  });
});
