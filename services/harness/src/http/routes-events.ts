// The event stream of a session (SSE). Closing it never cancels anything (I14).
import { SseConnection } from "../adapters/sse-connection.ts";
import { parsePosition } from "../domain/position.ts";
import type { HttpDeps } from "./deps.ts";
import { defineRoute, headerOf, type Route, taken } from "./route.ts";
import * as schemas from "./schemas.ts";

export function eventRoutes(deps: HttpDeps, connections: Set<SseConnection>): Route[] {
  const { config, events, sessions } = deps;
  const stream = defineRoute({
    method: "GET",
    path: "/v1/sessions/{sid}/events",
    operation: "streamEvents",
    summary: "The session's events: a snapshot and the newest turn, or everything after Last-Event-ID; then live.",
    role: "client",
    params: schemas.SessionParams,
    query: schemas.EventsQuery,
    headers: { "last-event-id": "Id of the last event received; 0 = the whole session. Query: last_event_id." },
    responses: { 200: { description: "Server-sent events", type: "text/event-stream" } },
    errors: [400, 404, 503],
    async handle({ params, query, headers, identity, reply }) {
      const given = headerOf(headers, "last-event-id") || query.last_event_id || undefined;
      const from = given === undefined ? null : parsePosition(given);
      await sessions.require(params.sid, identity);
      reply.hijack();
      const { raw } = reply;
      if (raw.destroyed) return taken;
      const connection = new SseConnection(raw, {
        heartbeatMs: config.heartbeatMs,
        pauseBytes: config.bufferBytes / 2,
      });
      connections.add(connection);
      const pump = events.open(params.sid, from, connection);
      raw.once("close", () => {
        connections.delete(connection);
        pump.stop();
      });
      return taken;
    },
  });
  return [stream];
}
