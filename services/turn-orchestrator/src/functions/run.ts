// run::start and run::abort: the doors, offered on the bus while an orchestrator is live.
import { acceptAbort, acceptStart } from "@flotilla/bus";
import { runAbort, runStart } from "@flotilla/contracts";
import { type Implementation, implement } from "@flotilla/worker";
import { context as otelContext, propagation } from "@opentelemetry/api";
import type { EngineDeps } from "../engine/types.ts";

export function makeRunFunctions(deps: EngineDeps): Implementation[] {
  const { config } = deps;
  const defaults = {
    provider: config.FLOTILLA_DEFAULT_PROVIDER,
    model: config.FLOTILLA_DEFAULT_MODEL,
    approvalTtlMs: config.FLOTILLA_APPROVAL_TTL_MS,
  };
  return [
    implement(runStart, (_context, request) =>
      acceptStart(deps.bus, request, { defaults, traceparent: currentTraceparent(), now: deps.now }),
    ),
    implement(runAbort, (_context, request) => acceptAbort(deps.bus, request)),
  ];
}

/** The caller's trace, kept with the turn so that every owner of it goes on in the same trace (I15). */
function currentTraceparent(): string | null {
  const carrier: { traceparent?: string } = {};
  propagation.inject(otelContext.active(), carrier);
  return carrier.traceparent ?? null;
}
