// Whether an instance is dead (commit-design.md): by asking it, never by the registry alone.
import type { Bus } from "@flotilla/bus";
import { subjects } from "@flotilla/contracts";
import { errors } from "@nats-io/transport-node";
import { systemClock } from "./system-clock.ts";

const pauseMs = 250;
const silenceMs = 1_000;
/** How long a worker may take to be back after the server that we have just reconnected to. */
const resubscribeMs = 3_000;

/**
 * Dead: nobody is subscribed for it twice, 250 ms apart (a SIGKILL shows at once), or it is silent for three times a
 * second and has no registry key. While our own connection is down, and just after it has come back, nothing is known, so
 * it counts as alive.
 */
export async function isInstanceDead(bus: Bus, worker: string, instance: string): Promise<boolean> {
  let unanswered = 0;
  let silent = 0;
  while (unanswered < 2 && silent < 3) {
    const answer = await pingInstance(bus, instance);
    if (answer === "alive" || !bus.connected || Date.now() - bus.reconnectedAt < resubscribeMs) return false;
    if (answer === "silent") silent += 1;
    else if (++unanswered < 2) await systemClock.sleep(pauseMs);
  }
  return unanswered >= 2 || !bus.registry.isInstanceLive(worker, instance);
}

async function pingInstance(bus: Bus, instance: string): Promise<"alive" | "nobody" | "silent"> {
  try {
    await bus.nc.request(subjects.instance(instance), "", { timeout: silenceMs });
    return "alive";
  } catch (error) {
    return isNoResponders(error) ? "nobody" : "silent";
  }
}

function isNoResponders(error: unknown): boolean {
  if (error instanceof errors.RequestError) return error.isNoResponders();
  return error instanceof errors.NoRespondersError;
}
