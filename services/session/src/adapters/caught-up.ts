// Read your writes for lists: waits until the projection holds what was committed when the request came.
import type { Bus } from "@flotilla/bus";
import { consumerNames, streamNames } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { newestCommits } from "./commit-reader.ts";
import type { Projector } from "./projector.ts";
import type { Repair } from "./repair.ts";

export interface CaughtUpDeps {
  readonly bus: Bus;
  readonly projector: Pick<Projector, "inspect" | "kick">;
  readonly repair: Pick<Repair, "fill">;
  readonly waitMs: number;
}

const pollMs = 20;
/** So long the consumer gets before the reader fetches what is missing itself: a dead replica's share comes 10 s later. */
const consumerMs = 300;

/** A connection that is just being made again is waited for; a Redis that is away is said at once after that. */
const reconnectMs = 500;

/** Past `waitMs` a projection that is merely behind is good enough; one that is not complete is STORE_UNAVAILABLE. */
export async function untilCaughtUp(deps: CaughtUpDeps): Promise<void> {
  const giveUpAt = Date.now() + deps.waitMs;
  const [newest] = await Promise.all([newestCommits(deps.bus), untilComplete(deps, giveUpAt)]);
  await Promise.all([...newest].map(([shard, seq]) => untilProjected(deps, { shard, seq, giveUpAt })));
}

async function untilComplete({ projector }: CaughtUpDeps, giveUpAt: number): Promise<void> {
  const storeGiveUpAt = Math.min(Date.now() + reconnectMs, giveUpAt);
  for (;;) {
    try {
      if ((await projector.inspect()).condition === "complete") return;
      projector.kick();
      if (Date.now() >= giveUpAt) {
        throw new FlotillaError("STORE_UNAVAILABLE", "the session list is being rebuilt", { retryAfterMs: 1_000 });
      }
    } catch (error) {
      if (Date.now() >= storeGiveUpAt) throw error;
    }
    await pause();
  }
}

async function untilProjected(
  { bus, repair }: CaughtUpDeps,
  target: { shard: number; seq: number; giveUpAt: number },
): Promise<void> {
  const { shard, seq, giveUpAt } = target;
  if (seq === 0) return;
  const fillAt = Math.min(Date.now() + consumerMs, giveUpAt);
  for (;;) {
    const info = await bus.jsm.consumers.info(streamNames.turnStep(shard), consumerNames.projector);
    const floor = info.ack_floor.stream_seq;
    if (floor >= seq || (info.delivered.stream_seq >= seq && info.num_ack_pending === 0)) return;
    if (Date.now() < fillAt) {
      await pause();
      continue;
    }
    const signal = AbortSignal.timeout(Math.max(giveUpAt - Date.now(), 1));
    return repair.fill({ shard, fromSeq: floor + 1, toSeq: seq, signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, pollMs));
}
