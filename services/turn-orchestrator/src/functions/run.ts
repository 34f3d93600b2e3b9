// run::start and run::abort: the doors, offered on the bus while an orchestrator is live.
import { acceptAbort, acceptStart } from "@flotilla/bus";
import { runAbort, runStart } from "@flotilla/contracts";
import { traceparentOf } from "@flotilla/telemetry";
import { type Implementation, implement } from "@flotilla/worker";
import type { EngineDeps } from "../engine/types.ts";

export function makeRunFunctions(deps: EngineDeps): Implementation[] {
  const { config } = deps;
  const defaults = {
    provider: config.FLOTILLA_DEFAULT_PROVIDER,
    model: config.FLOTILLA_DEFAULT_MODEL,
    approvalTtlMs: config.FLOTILLA_APPROVAL_TTL_MS,
  };
  return [
    // The caller's trace is kept with the turn, so that every owner of it goes on in the same trace (I15).
    implement(runStart, (_context, request) =>
      acceptStart(deps.bus, request, { defaults, traceparent: traceparentOf(), now: deps.now }),
    ),
    implement(runAbort, (_context, request) => acceptAbort(deps.bus, request)),
  ];
}
