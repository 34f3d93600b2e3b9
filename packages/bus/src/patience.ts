// Trying until the bus answers: an operation that may be repeated outlives a restart of the server.
import { FlotillaError } from "@flotilla/errors";
import { JetStreamApiError } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { isPermission, isRefused } from "./journal-errors.ts";

/** Repeats what got no answer, up to `patienceMs`; a refusal by the server is final. */
export async function untilAnswered<T>(
  nc: NatsConnection,
  what: string,
  attempt: () => Promise<T>,
  patienceMs = 120_000,
): Promise<T> {
  const giveUpAt = Date.now() + patienceMs;
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof FlotillaError) throw error;
      if (isPermission(error)) throw refused(what, error);
      if (isRefused(error) || isFinal(error))
        throw new FlotillaError("INTERNAL", `${what} was refused`, { cause: error });
      if (nc.isClosed() || Date.now() > giveUpAt) throw unanswered(what, error);
      await pause(Math.min(20 * 2 ** tries, 500));
    }
  }
}

export function refused(what: string, cause: unknown): FlotillaError {
  return new FlotillaError("BUS_PERMISSION", `${what} is not allowed for this bus user`, { cause });
}

export function unanswered(what: string, cause?: unknown): FlotillaError {
  return new FlotillaError("BUS_UNAVAILABLE", `${what} got no answer from the bus`, { cause });
}

/** The server understood and said no; 503 is "not now". */
function isFinal(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.status >= 400 && error.status < 500 && error.status !== 408;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
