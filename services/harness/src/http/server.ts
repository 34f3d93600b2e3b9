// The HTTP server: fastify around the routes. `buildServer` does not listen, so that tests may inject.
import type { IncomingMessage } from "node:http";
import { ensureFlotillaError, FlotillaError } from "@flotilla/errors";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { SseConnection } from "../adapters/sse-connection.ts";
import { checkOrigin } from "../domain/origin.ts";
import { anyone, type Identity, requireRole } from "../domain/tokens.ts";
import { version } from "../version.ts";
import { consoleRoutes } from "./console.ts";
import type { HttpDeps } from "./deps.ts";
import { openapiOf } from "./openapi.ts";
import { invalidRequest, problemOf, problemType } from "./problem.ts";
import { readJsonBody } from "./read-body.ts";
import { type Route, taken } from "./route.ts";
import { approvalRoutes } from "./routes-approvals.ts";
import { eventRoutes } from "./routes-events.ts";
import { fleetRoutes } from "./routes-fleet.ts";
import { notFound, sessionRoutes } from "./routes-sessions.ts";
import { traced } from "./traced.ts";

export interface HttpServer {
  readonly app: FastifyInstance;
  /** Event streams that are open now. */
  readonly openStreams: number;
  /** Ends the open event streams, whose readers come back with their position, and closes. */
  close(): Promise<void>;
}

const identities = new WeakMap<FastifyRequest, Identity>();
/** Names of path parameters as problem documents say them. */
const paramFields: Readonly<Record<string, string>> = { sid: "session_id" };

export function buildServer(deps: HttpDeps): HttpServer {
  const app = Fastify({
    bodyLimit: deps.config.bodyLimitBytes,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 8_192, ignoreTrailingSlash: true },
    forceCloseConnections: true,
    // Its own answers to bad requests are not problem documents; ours are set below.
    frameworkErrors: (error, _request, reply) => sendError(deps, reply as FastifyReply, error),
  });
  const connections = new Set<SseConnection>();
  const routes = [
    ...sessionRoutes(deps),
    ...eventRoutes(deps, connections),
    ...approvalRoutes(deps),
    ...fleetRoutes(deps),
  ];
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", (request: FastifyRequest, payload: IncomingMessage) =>
    readJsonBody(payload, request.raw, deps.config.bodyLimitBytes),
  );
  app.addHook("onRequest", async (request) => admit(deps, request));
  app.setErrorHandler((error, _request, reply) => sendError(deps, reply, error));
  app.setNotFoundHandler(notFound);
  for (const route of routes) addRoute(app, route);
  const document = openapiOf(routes, version);
  app.get("/openapi.json", { config: { role: "public" } }, async () => document);
  if (deps.config.hasConsole) consoleRoutes(app);
  return {
    app,
    get openStreams() {
      return connections.size;
    },
    async close() {
      for (const connection of connections) connection.end();
      await app.close();
    },
  };
}

/** Who may in: origin first, then the token and its role, before a byte of the body is read. */
function admit(deps: HttpDeps, request: FastifyRequest): void {
  const { headers, method } = request;
  const fetchSite = headers["sec-fetch-site"];
  checkOrigin(
    {
      method,
      host: headers.host,
      origin: headers.origin,
      fetchSite: Array.isArray(fetchSite) ? fetchSite[0] : fetchSite,
    },
    { isOpen: deps.auth.isOpen, allowedHosts: deps.config.allowedHosts },
  );
  const { role } = request.routeOptions.config as { role?: Route["role"] };
  if (role === undefined || role === "public") return;
  const identity = deps.auth.identify(headers.authorization);
  requireRole(identity, role);
  identities.set(request, identity);
}

function addRoute(app: FastifyInstance, route: Route): void {
  app.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    config: { role: route.role },
    handler: async (request, reply) => {
      const params = parsePart(route.params, request.params, (field) => paramFields[field] ?? field);
      const query = parsePart(route.query, request.query);
      const body = parsePart(route.body, request.body);
      const identity = identities.get(request) ?? anyone;
      const parts = { params, query, body, identity, headers: request.headers, reply } as never;
      const answer = await traced(route, { request, params, query, body }, () => route.handle(parts));
      if (answer === taken) return reply;
      return reply
        .code(answer.status)
        .headers(answer.headers ?? {})
        .send(answer.body);
    },
  });
}

function parsePart(schema: Route["body"], value: unknown, rename = (field: string): string => field): unknown {
  if (schema === null) return null;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const error = invalidRequest(parsed.error);
  if (value === undefined) throw new FlotillaError("INVALID_INPUT", "a JSON body is needed", { field: "body" });
  if (error.field === undefined || rename(error.field) === error.field) throw error;
  const field = rename(error.field);
  throw new FlotillaError(error.code, error.message.replace(error.field, field), { field });
}

function sendError(deps: HttpDeps, reply: FastifyReply, thrown: unknown): void {
  const error = ensureFlotillaError(fromFastify(thrown));
  if (error.disposition === "defect") {
    deps.logger.error("a request failed", { error: error.cause ?? error, url: reply.request.routeOptions.url });
  }
  const problem = problemOf(error);
  reply.code(problem.status).header("content-type", problemType);
  if (error.retryAfterMs !== undefined) reply.header("retry-after", String(Math.ceil(error.retryAfterMs / 1000)));
  if (error.code === "UNAUTHENTICATED") reply.header("www-authenticate", "Bearer");
  // As bytes: fastify would add a charset, which JSON types do not have.
  void reply.send(Buffer.from(JSON.stringify(problem)));
}

/** Fastify's own refusals in our codes. */
function fromFastify(thrown: unknown): unknown {
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    const options = { field: "content-type", cause: thrown };
    return new FlotillaError("UNSUPPORTED_MEDIA_TYPE", "send the body as Content-Type: application/json", options);
  }
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    return new FlotillaError("PAYLOAD_TOO_LARGE", "the body is too large", { cause: thrown });
  }
  if (code === "FST_ERR_BAD_URL") return new FlotillaError("INVALID_INPUT", "the URL is malformed", { cause: thrown });
  if (code === "ECONNRESET" || code === "ERR_STREAM_PREMATURE_CLOSE") {
    return new FlotillaError("INVALID_INPUT", "the body was cut off", { field: "body", cause: thrown });
  }
  return thrown;
}
