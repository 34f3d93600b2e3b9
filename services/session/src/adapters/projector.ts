// The projector: writes every commit into Redis and keeps that projection whole (I7). Any number of replicas.
//
// P1 A commit is acknowledged only after its write; Redis away or emptied means it is given back, never dropped.
// P2 Redis being away stops nothing but this: the worker stays ready and says `degraded`.
// P3 The supervisor looks every second: an emptied Redis is rebuilt, a restarted one is caught up from its checkpoint.
import type { Bus } from "@flotilla/bus";
import { consumerNames, streamNames, subjects } from "@flotilla/contracts";
import { isFlotillaError } from "@flotilla/errors";
import { type ProjectionStatus, projectionOf, type State } from "@flotilla/state";
import type { Logger } from "@flotilla/telemetry";
import type { Background } from "@flotilla/worker";
import type { ConsumerInfo, ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import { createStallDetector, type StallDetector } from "../domain/stall-detector.ts";
import { journalIdentity } from "./commit-reader.ts";
import { createFeed, type Feed } from "./feed.ts";
import type { Repair } from "./repair.ts";

export interface ProjectorDeps {
  readonly bus: Bus;
  readonly state: State;
  readonly repair: Repair;
  readonly logger: Logger;
  readonly onProjected?: (outcome: "applied" | "older" | "returned" | "unreadable") => void;
  /** How long the consumer may have work and deliver nothing. Longer than its ack_wait. @default 20000 */
  readonly stallMs?: number;
  /** How often the consumer is looked at. @default 5000 */
  readonly consumerLookMs?: number;
  /** How soon a commit that could not be written is delivered again. @default 500 */
  readonly retryMs?: number;
  /** @default the shared durable consumer */
  readonly openConsumer?: (shard: number, onMessage: (message: JsMsg) => void) => Promise<ConsumerMessages>;
}

export interface Projector extends Background {
  /** Makes the supervisor look now. */
  kick(): void;
  /** The projection as it is now; throws STORE_UNAVAILABLE while Redis is away. */
  inspect(): Promise<ProjectionStatus>;
}

interface Shard {
  readonly feed: Feed;
  readonly detector: StallDetector;
  stalls: number;
}

const lookMs = 1_000;
const impatientMs = 200;
const maxDeliveries = 5;

export function createProjector(deps: ProjectorDeps): Projector {
  const { bus, state, repair, logger } = deps;
  const { projection } = state;
  const retryMs = deps.retryMs ?? 500;
  const stop = new AbortController();
  const trouble = { store: false, repairing: false, stalled: false };
  const shards = new Map<number, Shard>();
  let identity: Promise<string> | null = null;
  let wake = (): void => {};
  let kicked = false;
  let running: Promise<void> = Promise.resolve();
  let consumerLookAt = 0;
  const subscriptions: (() => void)[] = [];

  const kick = (): void => {
    kicked = true;
    wake();
  };
  const inspect = async (): Promise<ProjectionStatus> => {
    identity ??= journalIdentity(bus).catch((error: unknown) => {
      identity = null;
      throw error;
    });
    return projection.inspect(await identity);
  };

  function storeIsAway(): void {
    trouble.store = true;
    for (const { feed } of shards.values()) feed.pause(retryMs);
  }

  async function project(message: JsMsg): Promise<void> {
    let write: ReturnType<typeof projectionOf>;
    try {
      const stored = await bus.journal.decodeCommit(message.subject, message.seq, message.data);
      if (stored === null) return message.ack();
      write = projectionOf(stored);
    } catch (error) {
      return unreadable(message, error);
    }
    try {
      const applied = await projection.apply(write);
      if (applied === "applied" || applied === "older") {
        message.ack();
        return deps.onProjected?.(applied);
      }
      kick();
    } catch (error) {
      if (!isFlotillaError(error)) logger.error("a commit could not be projected", { error: String(error) });
      storeIsAway();
    }
    message.nak(retryMs);
    deps.onProjected?.("returned");
  }

  /** A commit nobody can read must not hold up the others for ever: after some deliveries it goes to the dead letters. */
  async function unreadable(message: JsMsg, error: unknown): Promise<void> {
    const { deliveryCount } = message.info;
    if (deliveryCount < maxDeliveries) return message.nak(retryMs * 2 ** deliveryCount);
    const reason = { subject: message.subject, seq: message.seq, error: String(error) };
    logger.error("a commit cannot be read and is left out of the projection", reason);
    try {
      await bus.js.publish(subjects.dead(bus.worker), JSON.stringify({ ...reason, at: Date.now() }));
    } catch (cause) {
      logger.warn("a dead letter was not stored, it is tried again", { error: String(cause) });
      return message.nak(retryMs * 2 ** maxDeliveries);
    }
    message.term("unreadable");
    deps.onProjected?.("unreadable");
  }

  async function look(): Promise<void> {
    const status = await inspect();
    if (trouble.store) logger.info("redis answers, the projector goes on");
    trouble.store = false;
    for (const { feed } of shards.values()) feed.resume();
    const isOrphaned = status.building !== null && !status.locked;
    const isUsable = status.condition === "complete" || status.condition === "restarted";
    trouble.repairing = status.condition !== "complete";
    if (!isUsable || isOrphaned) {
      const built = await repair.rebuild({ dropCurrent: !isUsable, signal: stop.signal });
      if (built !== null) trouble.repairing = false;
    } else if (status.condition === "restarted") {
      trouble.repairing = !(await repair.catchUp(status, stop.signal));
    } else if (Date.now() >= consumerLookAt) {
      consumerLookAt = Date.now() + (deps.consumerLookMs ?? 5_000);
      await lookAtConsumers(status);
    }
  }

  async function lookAtConsumers(status: ProjectionStatus): Promise<void> {
    const through = new Map<number, number>();
    for (const [number, shard] of shards) {
      const info = await bus.jsm.consumers.info(streamNames.turnStep(number), consumerNames.projector);
      through.set(number, info.ack_floor.stream_seq);
      if (!shard.detector.observe(progressOf(info), Date.now())) {
        if (isIdle(info)) shard.stalls = 0;
        continue;
      }
      shard.stalls += 1;
      logger.warn("the projector's consumer has work and delivers nothing, pulling anew", { shard: number });
      shard.feed.restart();
      // field: nats-io/nats-server#5679: should pulling anew not help, the journal is read past the consumer.
      if (shard.stalls > 1) await repair.catchUp(status, stop.signal);
    }
    trouble.stalled = [...shards.values()].some((shard) => shard.stalls > 0);
    await projection.checkpoint(through);
  }

  async function supervise(): Promise<void> {
    while (!stop.signal.aborted) {
      kicked = false;
      try {
        await look();
      } catch (error) {
        if (stop.signal.aborted) return;
        if (isFlotillaError(error) && error.code === "STORE_UNAVAILABLE") storeIsAway();
        else logger.warn("the projection could not be checked", { error: String(error) });
      }
      if (kicked) await pause(impatientMs / 10);
      else await pause(trouble.store || trouble.repairing ? impatientMs : lookMs);
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      function done(): void {
        clearTimeout(timer);
        wake = () => {};
        resolve();
      }
      wake = done;
    });
  }

  const open = deps.openConsumer ?? ((shard, onMessage) => openConsumer(bus, shard, onMessage));
  return {
    name: "projector",
    kick,
    inspect,
    async start() {
      for (let shard = 0; shard < bus.journal.shards; shard++) {
        const feed = createFeed({
          logger,
          open: (onMessage) => open(shard, onMessage),
          handle: async (messages) => {
            await Promise.all(messages.map(project));
          },
        });
        shards.set(shard, { feed, detector: createStallDetector(deps.stallMs ?? 20_000), stalls: 0 });
      }
      subscriptions.push(state.onReady(kick));
      subscriptions.push(
        bus.onReconnect(() => {
          identity = null;
          kick();
        }),
      );
      running = supervise();
    },
    async stop() {
      stop.abort();
      for (const unsubscribe of subscriptions.splice(0)) unsubscribe();
      wake();
      await Promise.all([...shards.values()].map(({ feed }) => feed.stop()));
      await running;
    },
    readiness() {
      if (trouble.store) return "degraded: redis";
      if (trouble.repairing) return "degraded: the projection is being rebuilt";
      return trouble.stalled ? "degraded: the projector's consumer delivers nothing" : null;
    },
  };
}

async function openConsumer(bus: Bus, shard: number, onMessage: (message: JsMsg) => void): Promise<ConsumerMessages> {
  const consumer = await bus.js.consumers.get(streamNames.turnStep(shard), consumerNames.projector);
  return consumer.consume({ callback: onMessage, max_messages: 256, abort_on_missing_resource: true });
}

function progressOf(info: ConsumerInfo): { pending: number; ackPending: number; delivered: number } {
  return { pending: info.num_pending, ackPending: info.num_ack_pending, delivered: info.delivered.consumer_seq };
}

function isIdle(info: ConsumerInfo): boolean {
  return info.num_pending + info.num_ack_pending === 0;
}
