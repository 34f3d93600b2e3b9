// What is seen of a call from outside: its span, its one log record, its metrics. Never its payload.
import type { FlotillaError } from "@flotilla/errors";
import { attributeNames, idAttributesOf, isTracing, type Logger, spanNames } from "@flotilla/telemetry";
import { type Context, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { FunctionMetrics } from "./call-metrics.ts";
import type { FunctionStats } from "./discovery.ts";
import type { Invocation } from "./invocation.ts";

export interface Observed {
  readonly worker: string;
  readonly instance: string;
  readonly functionId: string;
  readonly logger: Logger;
  readonly metrics: FunctionMetrics;
  readonly stats: FunctionStats;
}

export interface Observation {
  /** The context that the handler runs in. */
  readonly context: Context;
  end(error?: FlotillaError): void;
}

const tracer = trace.getTracer("flotilla");

export function observeCall(observed: Observed, invocation: Invocation): Observation {
  const started = performance.now();
  observed.metrics.begin();
  const span = isTracing() ? startSpan(observed, invocation) : undefined;
  return {
    context: span === undefined ? invocation.parent : trace.setSpan(invocation.parent, span),
    end(error) {
      const durationMs = performance.now() - started;
      const code = error?.code ?? "OK";
      if (span !== undefined) endSpan(span, error);
      observed.metrics.end(code, durationMs);
      observed.stats.add(durationMs, error);
      logCall(observed, invocation, durationMs, error);
    },
  };
}

function startSpan(observed: Observed, invocation: Invocation): Span {
  const attributes = {
    ...idAttributesOf(invocation.ids),
    [attributeNames.functionId]: observed.functionId,
    [attributeNames.worker]: observed.worker,
    [attributeNames.instance]: observed.instance,
    [attributeNames.caller]: invocation.caller,
    [attributeNames.workspaceId]: invocation.workspace,
    [attributeNames.attempt]: invocation.attempt,
  };
  const options = { kind: SpanKind.SERVER, attributes };
  return tracer.startSpan(spanNames.execute(observed.functionId), options, invocation.parent);
}

function endSpan(span: Span, error: FlotillaError | undefined): void {
  span.setAttribute(attributeNames.code, error?.code ?? "OK");
  if (error !== undefined && !error.row.benign) {
    span.setAttribute(attributeNames.errorType, error.code);
    span.setStatus({ code: SpanStatusCode.ERROR, message: error.code });
  }
  span.end();
}

function logCall(observed: Observed, invocation: Invocation, durationMs: number, error?: FlotillaError): void {
  const { ids } = invocation;
  const record = {
    function: observed.functionId,
    caller: invocation.caller,
    attempt: invocation.attempt,
    duration_ms: Math.round(durationMs * 1_000) / 1_000,
    code: error?.code ?? "OK",
    session_id: ids.sessionId,
    message_id: ids.messageId,
    turn_id: ids.turnId,
    call_id: ids.callId,
  };
  if (error === undefined) observed.logger.info("invocation", record);
  else observed.logger[levelOf(error)]("invocation", { ...record, error: errorRecord(error) });
}

function levelOf(error: FlotillaError): "debug" | "info" | "warn" | "error" {
  if (error.row.benign) return "debug";
  switch (error.disposition) {
    case "terminal":
      return "warn";
    case "retry":
    case "wait":
      return "info";
    case "cancelled":
      return "debug";
    case "defect":
      return "error";
    default:
      return error.disposition satisfies never;
  }
}

/** A defect is told with its stack and cause; an expected error by its message alone. */
function errorRecord(error: FlotillaError): unknown {
  return error.disposition === "defect" ? error : { message: error.message, field: error.field };
}
