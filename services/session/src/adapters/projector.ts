// The projector: writes every commit into Redis and keeps that projection whole (I7). Any number of replicas.
//
// P1 A commit is acknowledged only after its write; Redis away or emptied means it is given back, never dropped.
// P2 Redis being away stops nothing but this: the worker stays ready and says `degraded`.
// P3 The supervisor looks every second: an emptied Redis is rebuilt, a restarted one is caught up from its checkpoint.
import type { Bus } from "@flotilla/bus";
import { isFlotillaError } from "@flotilla/errors";
import type { ProjectionStatus, State } from "@flotilla/state";
import type { Logger } from "@flotilla/telemetry";
import type { Background } from "@flotilla/worker";
import { journalIdentity } from "./commit-reader.ts";
import { createCommitSink, type SinkOutcome } from "./commit-sink.ts";
import type { Repair } from "./repair.ts";
import { createShardFeeds, type OpenConsumer, type ShardFeeds, sharedConsumer } from "./shard-feeds.ts";
import { createWakeable } from "./wakeable.ts";

export interface ProjectorDeps {
  readonly bus: Bus;
  readonly state: State;
  readonly repair: Repair;
  readonly logger: Logger;
  readonly onProjected?: (outcome: SinkOutcome) => void;
  /** How long the consumer may have work and deliver nothing. Longer than its ack_wait. @default 20000 */
  readonly stallMs?: number;
  /** How often the consumer is looked at. @default 5000 */
  readonly consumerLookMs?: number;
  /** How soon a commit that could not be written is delivered again. @default 500 */
  readonly retryMs?: number;
  /** @default the shared durable consumer */
  readonly openConsumer?: OpenConsumer;
}

export interface Projector extends Background {
  /** Makes the supervisor look now. */
  kick(): void;
  /** The projection as it is now; throws STORE_UNAVAILABLE while Redis is away. */
  inspect(): Promise<ProjectionStatus>;
}

const lookMs = 1_000;
const impatientMs = 200;

export function createProjector(deps: ProjectorDeps): Projector {
  const { bus, state, logger, retryMs = 500, consumerLookMs = 5_000 } = deps;
  const stop = new AbortController();
  const timer = createWakeable(stop.signal);
  const trouble = { store: false, repairing: false, stalled: false };
  const subscriptions: (() => void)[] = [];
  let identity: Promise<string> | null = null;
  let running: Promise<void> = Promise.resolve();
  let consumerLookAt = 0;

  const storeIsAway = (): void => {
    trouble.store = true;
    feeds.pause(retryMs);
  };
  const sink = createCommitSink({
    ...{ bus, state, logger, retryMs, onProjected: deps.onProjected },
    onStoreAway: storeIsAway,
    onLost: timer.wake,
  });
  const open = deps.openConsumer ?? sharedConsumer(bus);
  const feeds: ShardFeeds = createShardFeeds({ bus, logger, stallMs: deps.stallMs ?? 20_000, open, handle: sink });

  const inspect = async (): Promise<ProjectionStatus> => {
    identity ??= journalIdentity(bus).catch((error: unknown) => {
      identity = null;
      throw error;
    });
    return state.projection.inspect(await identity);
  };

  async function look(): Promise<void> {
    const status = await inspect();
    if (trouble.store) logger.info("redis answers, the projector goes on");
    trouble.store = false;
    feeds.resume();
    trouble.repairing = status.condition !== "complete";
    trouble.repairing = !(await repaired(deps.repair, status, stop.signal));
    if (trouble.repairing || Date.now() < consumerLookAt) return;
    consumerLookAt = Date.now() + consumerLookMs;
    const { ackFloors, stalls } = await feeds.look();
    trouble.stalled = stalls > 0;
    // field: nats-io/nats-server#5679: should pulling anew not help, the journal is read past the consumer.
    if (stalls > 1) await deps.repair.catchUp(status, stop.signal);
    await state.projection.checkpoint(ackFloors);
  }

  async function supervise(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await look();
      } catch (error) {
        if (stop.signal.aborted) return;
        if (isFlotillaError(error) && error.code === "STORE_UNAVAILABLE") storeIsAway();
        else logger.warn("the projection could not be checked", { error: String(error) });
      }
      await timer.wait(trouble.store || trouble.repairing ? impatientMs : lookMs);
    }
  }

  return {
    name: "projector",
    kick: timer.wake,
    inspect,
    async start() {
      const forgetIdentity = (): void => {
        identity = null;
        timer.wake();
      };
      subscriptions.push(state.onReady(timer.wake), bus.onReconnect(forgetIdentity));
      running = supervise();
    },
    async stop() {
      stop.abort();
      for (const unsubscribe of subscriptions.splice(0)) unsubscribe();
      await feeds.stop();
      await running;
    },
    readiness() {
      if (trouble.store) return "degraded: redis";
      if (trouble.repairing) return "degraded: the projection is being rebuilt";
      return trouble.stalled ? "degraded: the projector's consumer delivers nothing" : null;
    },
  };
}

/** Repairs what needs it; false while it is not whole yet, for instance because another replica is at it. */
async function repaired(repair: Repair, status: ProjectionStatus, signal: AbortSignal): Promise<boolean> {
  const isReadable = status.condition === "complete" || status.condition === "restarted";
  const isOrphaned = status.building !== null && !status.locked;
  if (!isReadable || isOrphaned) return (await repair.rebuild({ dropCurrent: !isReadable, signal })) !== null;
  if (status.condition === "restarted") return repair.catchUp(status, signal);
  return true;
}
