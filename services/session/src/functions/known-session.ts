// Refuses sessions that the journal has never heard of.
import type { Bus } from "@flotilla/bus";
import { FlotillaError } from "@flotilla/errors";

/** A session is known by its first message of any kind, not by its first commit. */
export async function requireSession(bus: Bus, sessionId: string): Promise<void> {
  if ((await bus.journal.lastSequence(sessionId)) > 0) return;
  throw new FlotillaError("SESSION_NOT_FOUND", `there is no session ${sessionId}`, { field: "session_id" });
}
