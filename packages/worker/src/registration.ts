// The worker's entry in the registry, for as long as it serves; written again after every reconnect.
import type { Bus } from "@flotilla/bus";
import type { WorkerManifest } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import { systemClock } from "./system-clock.ts";

export interface Registration {
  /** Why the entry may be missing, or null. */
  problem(): string | null;
  leave(): Promise<void>;
}

const retryMs = 1_000;

export async function keepRegistered(
  bus: Bus,
  logger: Logger,
  manifest: Omit<WorkerManifest, "first_registered_at">,
): Promise<Registration> {
  const left = new AbortController();
  let missing: string | null = null;

  const registerAgain = async (): Promise<void> => {
    for (let tries = 0; !left.signal.aborted; tries++) {
      try {
        await bus.registry.register(manifest);
        missing = null;
        logger.info("registered again after a reconnect");
        return;
      } catch (error) {
        missing = "not registered again after a reconnect";
        if (tries === 0) logger.warn("could not register again yet; trying until it works", { error });
      }
      await systemClock.sleep(retryMs, left.signal);
    }
  };

  await bus.registry.register(manifest);
  const stopListening = bus.onReconnect(() => void registerAgain());
  return {
    problem: () => missing,
    async leave() {
      left.abort();
      stopListening();
      try {
        await bus.registry.leave();
      } catch (error) {
        // Others drop the instance when its key expires or its subject has no responders.
        logger.warn("could not leave the registry", { error });
      }
    },
  };
}
