// The span of one HTTP request (I15): the turn's trace starts here, or goes on from the caller's.
import { ensureFlotillaError } from "@flotilla/errors";
import {
  attributeNames,
  type CallIds,
  extractContext,
  idAttributesOf,
  isTracing,
  spanNames,
  withIds,
} from "@flotilla/telemetry";
import { context, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { FastifyRequest } from "fastify";
import { type Answer, type Route, taken } from "./route.ts";

export interface TracedRequest {
  readonly request: FastifyRequest;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

type Outcome = Answer | typeof taken;

export async function traced(route: Route, parts: TracedRequest, work: () => Promise<Outcome>): Promise<Outcome> {
  const { headers } = parts.request;
  const carrier = {
    get: (name: string) => headerText(headers[name]),
    set: () => undefined,
    keys: () => Object.keys(headers),
  };
  const ids = idsIn(parts);
  const parent = withIds(extractContext(carrier), ids);
  if (!isTracing()) return context.with(parent, work);
  const attributes = {
    ...idAttributesOf(ids),
    [attributeNames.worker]: "harness",
    [attributeNames.httpMethod]: route.method,
    [attributeNames.httpRoute]: route.path,
  };
  const options = { kind: SpanKind.SERVER, attributes };
  const span = trace.getTracer("flotilla").startSpan(spanNames.serve(route.method, route.path), options, parent);
  try {
    const outcome = await context.with(trace.setSpan(parent, span), work);
    noteStatus(span, outcome === taken ? 200 : outcome.status);
    return outcome;
  } catch (error) {
    const { code, httpStatus } = ensureFlotillaError(error);
    span.setAttribute(attributeNames.errorType, code);
    noteStatus(span, httpStatus);
    throw error;
  } finally {
    span.end();
  }
}

function noteStatus(span: Span, status: number): void {
  span.setAttribute(attributeNames.httpStatus, status);
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** From the path, else the query, else the body or the payload inside it. */
function idsIn({ params, query, body }: TracedRequest): CallIds {
  const places = [renamed(params), query, body, fieldOf(body, "payload")];
  const first = (field: string): string | undefined => {
    for (const place of places) {
      const value = fieldOf(place, field);
      if (typeof value === "string") return value;
    }
    return undefined;
  };
  return { sessionId: first("session_id"), messageId: first("message_id") };
}

function renamed(params: unknown): unknown {
  return { session_id: fieldOf(params, "sid") };
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}

function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(",") : value;
}
