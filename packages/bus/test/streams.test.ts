// The streams as declared: created once, refused when they differ.
import { consumerNames, streamNames } from "@flotilla/contracts";
import { startNats } from "@flotilla/testkit";
import { DiscardPolicy, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ensureStreams, readShards, verifyStreams } from "../src/index.ts";
import { rejection } from "./support.ts";

const stack = new AsyncDisposableStack();
let nc: NatsConnection;

beforeAll(async () => {
  const nats = stack.use(await startNats({ withStreams: false }));
  const { user, password } = nats.credentials.operator ?? { user: "", password: "" };
  nc = await connect({ servers: `127.0.0.1:${nats.port}`, user, pass: password });
  stack.defer(() => nc.close());
});
beforeEach(async () => {
  const jsm = await jetstreamManager(nc);
  for await (const name of jsm.streams.names()) await jsm.streams.delete(name);
});
afterAll(() => stack.disposeAsync());

describe("ensureStreams", () => {
  it("creates everything once and changes nothing the second time", async () => {
    await ensureStreams(nc, { shards: 2 });
    const jsm = await jetstreamManager(nc);
    const before = await jsm.streams.info(streamNames.turnStep(1));
    await ensureStreams(nc, { shards: 2 });
    const after = await jsm.streams.info(streamNames.turnStep(1));
    expect(after.created).toBe(before.created);
    expect(await readShards(nc)).toBe(2);
    const consumer = await jsm.consumers.info(streamNames.turnStep(1), consumerNames.turnStep);
    expect(consumer.config).toMatchObject({
      filter_subjects: ["turn.1.*.in.>", "turn.1.*.c.step"],
      ack_policy: "explicit",
      ack_wait: 2_000_000_000,
      max_ack_pending: 50_000,
    });
  });

  it("makes turn-step streams in which nothing can be scheduled, rolled up, expired or deleted", async () => {
    await ensureStreams(nc);
    const { config } = await (await jetstreamManager(nc)).streams.info(streamNames.turnStep(0));
    expect(config).toMatchObject({ deny_delete: true, discard: "new", storage: "file", max_age: 0, max_msgs: -1 });
    for (const field of ["allow_msg_schedules", "allow_rollup_hdrs", "allow_msg_ttl"] as const) {
      expect(config[field] ?? false).toBe(false);
    }
  });

  it("may be run by several at once", async () => {
    await Promise.all([ensureStreams(nc), ensureStreams(nc), ensureStreams(nc)]);
    expect(await verifyStreams(nc, 1)).toBe(1);
  });

  it("brings a consumer's limits up to date", async () => {
    await ensureStreams(nc);
    const jsm = await jetstreamManager(nc);
    await jsm.consumers.update(streamNames.turnStep(0), consumerNames.turnStep, { max_ack_pending: 7 });
    await ensureStreams(nc);
    const { config } = await jsm.consumers.info(streamNames.turnStep(0), consumerNames.turnStep);
    expect(config.max_ack_pending).toBe(50_000);
  });

  it.each([
    ["allow_rollup_hdrs", { allow_rollup_hdrs: true }],
    ["allow_msg_ttl", { allow_msg_ttl: true }],
    ["allow_msg_schedules", { allow_msg_schedules: true, allow_rollup_hdrs: true, discard: DiscardPolicy.Old }],
    ["deny_delete", { deny_delete: false }],
    ["max_age", { max_age: 1_000_000_000_000 }],
    ["max_msgs", { max_msgs: 10 }],
    ["republish", { republish: undefined }],
  ])("refuses a turn-step stream with another %s, naming it", async (field, change) => {
    await ensureStreams(nc);
    const jsm = await jetstreamManager(nc);
    const { config } = await jsm.streams.info(streamNames.turnStep(0));
    await jsm.streams.delete(streamNames.turnStep(0));
    const { republish, ...rest } = { ...config, ...change };
    await jsm.streams.add({ ...rest, ...(republish === undefined ? {} : { republish }) });
    const error = { code: "STREAM_MISMATCH", message: expect.stringMatching(`TURN_STEP_0.*${field}`) };
    expect(await rejection(ensureStreams(nc))).toMatchObject(error);
    expect(await rejection(verifyStreams(nc))).toMatchObject(error);
  });
});

describe("the number of shards", () => {
  it("is refused when it differs from the stored one, before any stream is made, with the way out", async () => {
    await ensureStreams(nc, { shards: 1 });
    const refusal = { code: "STREAM_MISMATCH", message: expect.stringMatching(/TURN_SHARDS=1.*migrate-shards --to 3/) };
    expect(await rejection(ensureStreams(nc, { shards: 3 }))).toMatchObject(refusal);
    expect(await rejection(verifyStreams(nc, 3))).toMatchObject(refusal);
    const jsm = await jetstreamManager(nc);
    await expect(jsm.streams.info(streamNames.turnStep(1))).rejects.toThrow(/not found/);
  });

  it("is taken from the store when none is asked for", async () => {
    await ensureStreams(nc, { shards: 3 });
    expect(await verifyStreams(nc)).toBe(3);
  });

  it.each([0, 1.5, 1_000])("cannot be %d", async (shards) => {
    expect(await rejection(ensureStreams(nc, { shards }))).toMatchObject({
      code: "CONFIG_INVALID",
      field: "TURN_SHARDS",
    });
  });

  it("says who creates the streams when there are none", async () => {
    const message = expect.stringContaining("flotilla up");
    expect(await rejection(verifyStreams(nc))).toMatchObject({ code: "STREAM_MISMATCH", message });
  });
});
