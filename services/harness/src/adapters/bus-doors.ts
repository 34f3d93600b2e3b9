// Writes through the worker that offers the function while it is live, else straight into the journal: a turn is
// accepted while the orchestrator is at zero. Both ways end in the same code of the bus package.
import { acceptAbort, acceptInbox, acceptStart, type Bus } from "@flotilla/bus";
import { type FunctionContract, RunStartRequest, randomId, runAbort, runStart } from "@flotilla/contracts";
import { FlotillaError, isFlotillaError } from "@flotilla/errors";
import { injectContext } from "@flotilla/telemetry";
import type { HarnessConfig } from "../config.ts";
import type { Doors } from "../ports.ts";
import { within } from "./deadline.ts";

/** After this the worker counts as away: the same input is written here, once for ever by its id. */
const startViaWorkerMs = 6_000;
const abortViaWorkerMs = 14_000;
const doorDeadlineMs = 20_000;

export function createDoors(bus: Bus, config: Pick<HarnessConfig, "defaults">): Doors {
  const isOffered = (contract: FunctionContract): boolean => bus.registry.resolve(contract.id)?.live === true;
  return {
    async start(request) {
      // The id is given here, so that a second way cannot make a second turn.
      const body = { ...request, message_id: request.message_id ?? randomId() };
      const ids = { sessionId: body.session_id, messageId: body.message_id, workspace: body.workspace };
      if (isOffered(runStart)) {
        try {
          return await bus.call(runStart, body, { ...ids, timeoutMs: startViaWorkerMs, caller: "client" });
        } catch (error) {
          if (!isAway(error)) throw error;
        }
      }
      const options = { defaults: config.defaults, traceparent: traceparent() };
      const accepting = acceptStart(bus, RunStartRequest.parse(body), options).catch(catalogAway);
      return within(doorDeadlineMs, "accepting the turn", accepting);
    },
    async abort(request) {
      if (isOffered(runAbort)) {
        try {
          const options = { timeoutMs: abortViaWorkerMs, caller: "client", sessionId: request.session_id };
          return await bus.call(runAbort, request, options);
        } catch (error) {
          if (!isAway(error)) throw error;
        }
      }
      return within(doorDeadlineMs, "aborting the turn", acceptAbort(bus, request));
    },
    inbox: (kind, request) => within(doorDeadlineMs, "accepting the message", acceptInbox(bus, kind, request)),
  };
}

function isAway(error: unknown): boolean {
  const away = ["WORKER_UNAVAILABLE", "FUNCTION_NOT_FOUND", "SHUTTING_DOWN", "TIMEOUT"];
  return isFlotillaError(error) && away.includes(error.code);
}

/** A model without a provider is looked up in the catalog: that nobody offers it is not the caller's mistake. */
function catalogAway(error: unknown): never {
  if (!isFlotillaError(error) || error.code !== "FUNCTION_NOT_FOUND") throw error;
  const options = { field: "model", retryAfterMs: 2_000, cause: error };
  throw new FlotillaError(
    "WORKER_UNAVAILABLE",
    "no models catalog is live to look the model up; name a provider",
    options,
  );
}

function traceparent(): string | null {
  const headers = new Map<string, string>();
  injectContext(headers);
  return headers.get("traceparent") ?? null;
}
