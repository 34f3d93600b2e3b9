// Read your writes for lists: waits until the projection holds what was committed when the request came.
import type { Bus } from "@flotilla/bus";
import { consumerNames, streamNames } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { newestCommitOf } from "./commit-reader.ts";
import type { Projector } from "./projector.ts";

const pollMs = 20;

/**
 * Past `waitMs` a projection that is merely behind is good enough; one that is being rebuilt is not (STORE_UNAVAILABLE).
 */
export async function untilCaughtUp(deps: {
  bus: Bus;
  projector: Pick<Projector, "inspect" | "kick">;
  waitMs: number;
}): Promise<void> {
  const { bus, projector, waitMs } = deps;
  const giveUpAt = Date.now() + waitMs;
  for (let shard = 0; shard < bus.journal.shards; shard++) {
    const newest = await newestCommitOf(bus, shard);
    while (!(await isAcked(bus, shard, newest)) && Date.now() < giveUpAt) await pause();
  }
  for (;;) {
    const { condition } = await projector.inspect();
    if (condition === "complete") return;
    projector.kick();
    if (Date.now() >= giveUpAt) {
      throw new FlotillaError("STORE_UNAVAILABLE", "the session list is being rebuilt", { retryAfterMs: 1_000 });
    }
    await pause();
  }
}

async function isAcked(bus: Bus, shard: number, seq: number): Promise<boolean> {
  if (seq === 0) return true;
  const info = await bus.jsm.consumers.info(streamNames.turnStep(shard), consumerNames.projector);
  if (info.ack_floor.stream_seq >= seq) return true;
  return info.delivered.stream_seq >= seq && info.num_ack_pending === 0;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, pollMs));
}
