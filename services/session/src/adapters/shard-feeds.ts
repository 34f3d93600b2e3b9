// The feeds of all shards, and the watch over their consumers.
import type { Bus } from "@flotilla/bus";
import { consumerNames, streamNames } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { ConsumerInfo, ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import { createStallDetector, type StallDetector } from "../domain/stall-detector.ts";
import { createFeed, type Feed } from "./feed.ts";

export type OpenConsumer = (shard: number, onMessage: (message: JsMsg) => void) => Promise<ConsumerMessages>;

export interface ShardFeedsOptions {
  readonly bus: Bus;
  readonly logger: Logger;
  readonly stallMs: number;
  readonly open: OpenConsumer;
  readonly handle: (messages: JsMsg[]) => Promise<void>;
}

export interface ShardFeeds {
  resume(): void;
  pause(delayMs: number): void;
  stop(): Promise<void>;
  /** Looks at every consumer; one that has work and delivers nothing is pulled anew. */
  look(): Promise<{ ackFloors: Map<number, number>; stalls: number }>;
}

interface Shard {
  readonly number: number;
  readonly feed: Feed;
  readonly detector: StallDetector;
  /** How often in a row pulling anew was needed. */
  stalls: number;
}

export function createShardFeeds(options: ShardFeedsOptions): ShardFeeds {
  const { bus, logger, handle } = options;
  const shards = Array.from({ length: bus.journal.shards }, (_, number): Shard => {
    const feed = createFeed({ logger, open: (onMessage) => options.open(number, onMessage), handle });
    return { number, feed, detector: createStallDetector(options.stallMs), stalls: 0 };
  });

  const lookAt = async (shard: Shard): Promise<number> => {
    const info = await bus.jsm.consumers.info(streamNames.turnStep(shard.number), consumerNames.projector);
    const progress = progressOf(info);
    if (shard.detector.observe(progress, Date.now())) {
      shard.stalls += 1;
      logger.warn("the projector's consumer has work and delivers nothing, pulling anew", { shard: shard.number });
      shard.feed.restart();
    } else if (progress.pending + progress.ackPending === 0) shard.stalls = 0;
    return info.ack_floor.stream_seq;
  };
  return {
    resume: () => shards.forEach(({ feed }) => void feed.resume()),
    pause: (delayMs) => shards.forEach(({ feed }) => void feed.pause(delayMs)),
    async stop() {
      await Promise.all(shards.map(({ feed }) => feed.stop()));
    },
    async look() {
      const ackFloors = new Map<number, number>();
      for (const shard of shards) ackFloors.set(shard.number, await lookAt(shard));
      return { ackFloors, stalls: Math.max(...shards.map((shard) => shard.stalls)) };
    },
  };
}

function progressOf(info: ConsumerInfo): { pending: number; ackPending: number; delivered: number } {
  return { pending: info.num_pending, ackPending: info.num_ack_pending, delivered: info.delivered.consumer_seq };
}

/** The shared durable consumer, which `flotilla up` has made. */
export function sharedConsumer(bus: Bus): OpenConsumer {
  return async (shard, onMessage) => {
    const consumer = await bus.js.consumers.get(streamNames.turnStep(shard), consumerNames.projector);
    return consumer.consume({ callback: onMessage, max_messages: 256, abort_on_missing_resource: true });
  };
}
