// Writes through the worker that offers the function while it is live, else straight into the journal: a turn is
// accepted while the orchestrator is at zero. Both ways end in the same code of the bus package.
import { acceptAbort, acceptInbox, acceptStart, type Bus } from "@flotilla/bus";
import { type FunctionContract, RunStartRequest, randomId, runAbort, runStart } from "@flotilla/contracts";
import { isFlotillaError } from "@flotilla/errors";
import { noteIds, traceparentOf } from "@flotilla/telemetry";
import type { HarnessConfig } from "../config.ts";
import type { Doors } from "../ports.ts";
import { within } from "./deadline.ts";

/** After this the worker counts as away: the same input is written here, once for ever by its id. */
const startViaWorkerMs = 2_500;
const abortViaWorkerMs = 14_000;
const doorDeadlineMs = 20_000;

export function createDoors(bus: Bus, config: Pick<HarnessConfig, "defaults">): Doors {
  return {
    async start(request) {
      // The id is given here, so that a second way cannot make a second turn.
      const body = { ...request, message_id: request.message_id ?? randomId() };
      const ids = { sessionId: body.session_id, messageId: body.message_id, workspace: body.workspace };
      noteIds(ids);
      const accepted = await whileLive(bus, runStart, (signal) =>
        bus.call(runStart, body, { ...ids, timeoutMs: startViaWorkerMs, caller: "client", signal }),
      );
      if (accepted !== null) return accepted;
      const options = { defaults: config.defaults, traceparent: traceparentOf() };
      return within(doorDeadlineMs, "accepting the turn", acceptStart(bus, RunStartRequest.parse(body), options));
    },
    async abort(request) {
      const ids = { sessionId: request.session_id, caller: "client" };
      const aborted = await whileLive(bus, runAbort, (signal) =>
        bus.call(runAbort, request, { ...ids, timeoutMs: abortViaWorkerMs, signal }),
      );
      return aborted ?? within(doorDeadlineMs, "aborting the turn", acceptAbort(bus, request));
    },
    inbox: (kind, request) => within(doorDeadlineMs, "accepting the message", acceptInbox(bus, kind, request)),
  };
}

/**
 * The worker's answer; null when nobody offers the function, or the last one that did is found to be gone. Its death may
 * be seen only by this call, and a user should not wait for a successor.
 */
async function whileLive<T>(
  bus: Bus,
  contract: FunctionContract,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const isLive = (): boolean => bus.registry.resolve(contract.id)?.live === true;
  if (!isLive()) return null;
  const gone = new AbortController();
  const over = new AbortController();
  const watch = async (): Promise<void> => {
    while (isLive() && !over.signal.aborted) await bus.registry.changed(1_000, over.signal);
    if (!over.signal.aborted) gone.abort();
  };
  void watch();
  try {
    return await call(gone.signal);
  } catch (error) {
    if (gone.signal.aborted || isAway(error)) return null;
    throw error;
  } finally {
    over.abort();
  }
}

function isAway(error: unknown): boolean {
  const away = ["WORKER_UNAVAILABLE", "FUNCTION_NOT_FOUND", "SHUTTING_DOWN", "TIMEOUT"];
  return isFlotillaError(error) && away.includes(error.code);
}
