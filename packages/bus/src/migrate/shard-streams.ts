// The turn-step streams before and after a move: made, made ready to receive, and taken away.
//
// T1 A message that is moved gets a sequence above every one that its session had: a client's old position is before the
//    session's first message then, and is recognised.
import { consumerNames, streamNames, subjects } from "@flotilla/contracts";
import { type JetStreamManager, StorageType } from "@nats-io/jetstream";
import { type NatsConnection, nanos } from "@nats-io/transport-node";
import { pause } from "../patience.ts";
import { type DeclaredStream, declaredConsumers, declaredStreams } from "../stream-declarations.ts";
import { ensureConsumer, ensureStream, mostShards } from "../streams.ts";
import type { MoveRecord } from "./move-record.ts";

export interface StreamsDeps {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly beforeChange: (what: string) => void | Promise<void>;
}

/** In which the server takes a message with an id it knows for the same one. */
const usualWindow = nanos(120_000);
/** The shortest there is: an id may come back to a stream that had it. */
const shortWindow = nanos(100);
const gapBatch = 5_000;

const shardByName = new Map(Array.from({ length: mostShards }, (_, shard) => [streamNames.turnStep(shard), shard]));

/** Numbers of the turn-step streams that exist, ascending. */
export async function existingShards(jsm: JetStreamManager): Promise<number[]> {
  const shards: number[] = [];
  for await (const name of jsm.streams.names()) {
    const shard = shardByName.get(name);
    if (shard !== undefined) shards.push(shard);
  }
  return shards.sort((a, b) => a - b);
}

export async function lastSequence(jsm: JetStreamManager, shard: number): Promise<number> {
  return (await jsm.streams.info(streamNames.turnStep(shard))).state.last_seq;
}

/** Makes the streams that the move needs, without consumers, and lifts the sequences of those that receive sessions. */
export async function prepareStreams(
  deps: StreamsDeps,
  move: MoveRecord,
  receivers: ReadonlySet<number>,
): Promise<void> {
  const existing = new Set(await existingShards(deps.jsm));
  for (const [shard, declared] of await streamsLikeFirst(deps.jsm, move.to)) {
    if (!existing.has(shard)) {
      await deps.beforeChange(`create ${declared.name}`);
      await ensureStream(deps.jsm, { ...declared, first_seq: move.floor + 1 });
    } else if (receivers.has(shard)) {
      await deps.beforeChange(`open ${declared.name}`);
      await deps.jsm.streams.update(declared.name, { duplicate_window: shortWindow });
      await liftSequence(deps, shard, move.floor);
    }
  }
}

/** T1, for a stream that exists: its next sequence can only be lifted by using up those before it. */
async function liftSequence({ nc, jsm, beforeChange }: StreamsDeps, shard: number, floor: number): Promise<void> {
  const subject = subjects.turnStepGap(shard);
  for (let last = await lastSequence(jsm, shard); last < floor; ) {
    await beforeChange(`lift ${streamNames.turnStep(shard)} from ${last}`);
    const batch = Math.min(floor - last, gapBatch);
    for (let sent = 0; sent < batch; sent++) nc.publish(subject);
    await nc.flush();
    const giveUpAt = Date.now() + 5_000;
    const aim = last + batch;
    // Unacknowledged ones may be lost on the way; the rest is sent with the next batch.
    while (last < aim && Date.now() < giveUpAt) {
      await pause(10);
      last = await lastSequence(jsm, shard);
    }
  }
  await jsm.streams.purge(streamNames.turnStep(shard), { filter: subject });
}

/** The streams and consumers as `shards` declares them, and no others. */
export async function settleStreams({ jsm, beforeChange }: StreamsDeps, shards: number): Promise<void> {
  const declared = await streamsLikeFirst(jsm, shards);
  for (const shard of await existingShards(jsm)) {
    if (declared.has(shard)) continue;
    await beforeChange(`delete ${streamNames.turnStep(shard)}`);
    await jsm.streams.delete(streamNames.turnStep(shard));
  }
  for (const stream of declared.values()) {
    await beforeChange(`settle ${stream.name}`);
    await ensureStream(jsm, stream);
    await jsm.streams.update(stream.name, { duplicate_window: usualWindow });
    await dropProjector(jsm, stream.name);
  }
  for (const { stream, config } of declaredConsumers(shards)) await ensureConsumer(jsm, stream, config);
}

/** A projection says by the birth of its consumers what it was made from: this one is built anew. */
async function dropProjector(jsm: JetStreamManager, stream: string): Promise<void> {
  for await (const { name } of jsm.consumers.list(stream)) {
    if (name === consumerNames.projector) await jsm.consumers.delete(stream, name);
  }
}

/** The declared ones, by number; new ones are kept as the first one is: as often, and on disk or not. */
async function streamsLikeFirst(jsm: JetStreamManager, shards: number): Promise<Map<number, DeclaredStream>> {
  const { config } = await jsm.streams.info(streamNames.turnStep(0));
  const options = { shards, replicas: config.num_replicas, memory: config.storage === StorageType.Memory };
  const found = new Map<number, DeclaredStream>();
  for (const stream of declaredStreams(options)) {
    const shard = shardByName.get(stream.name);
    if (shard !== undefined) found.set(shard, stream);
  }
  return found;
}
