// Routes about the fleet: trigger, workers, functions, health.
import { randomId } from "@flotilla/contracts";
import { ensureFlotillaError, FlotillaError, invalidInput } from "@flotilla/errors";
import { type Identity, requireRole, workspaceFor } from "../domain/tokens.ts";
import { checkTriggerable } from "../domain/trigger-rules.ts";
import { triggerStart } from "../functions/trigger-start.ts";
import type { HttpDeps } from "./deps.ts";
import { problemOf, problemType } from "./problem.ts";
import { type Answer, defineRoute, type Route } from "./route.ts";
import * as schemas from "./schemas.ts";

export function fleetRoutes(deps: HttpDeps): Route[] {
  return [trigger(deps), workers(deps), functions(deps), ready(deps), alive()];
}

function trigger(deps: HttpDeps): Route {
  const { bus, doors, sessions } = deps;
  return defineRoute({
    method: "POST",
    path: "/v1/trigger",
    operation: "trigger",
    summary: "Calls a function that is open to clients; run::start by default.",
    role: "client",
    body: schemas.TriggerBody,
    responses: { 200: { description: "What the function answered", schema: schemas.Triggered } },
    errors: [400, 403, 404, 409, 422, 503],
    async handle({ body, identity }) {
      const { function_id: functionId, message_id: messageId } = body;
      const sessionId = sessionOf(body);
      if (functionId === "run::start") {
        const workspace = workspaceFor(identity, workspaceIn(body.payload));
        const payload = workspace === undefined ? body.payload : { ...body.payload, workspace };
        return enveloped(() => triggerStart(doors, { ...body, session_id: sessionId ?? randomId(), payload }));
      }
      if (functionId.startsWith("approval::")) requireRole(identity, "approver");
      checkTriggerable(functionId, bus.registry.resolve(functionId) !== null);
      if (identity.workspace !== null) await requireOwn(functionId, sessionId, identity);
      const payload = { ...(body.session_id === undefined ? {} : { session_id: sessionId }), ...body.payload };
      const workspace = identity.workspace ?? undefined;
      return enveloped(() => bus.callId(functionId, payload, { caller: "client", sessionId, messageId, workspace }));
    },
  });

  /** A token of one workspace may not look across sessions, nor into one of another workspace. */
  async function requireOwn(functionId: string, sessionId: string | undefined, identity: Identity): Promise<void> {
    if (sessionId !== undefined) return sessions.require(sessionId, identity);
    if (/^(models::|session-tree::create$|demo::(?!effects$))/.test(functionId)) return;
    throw new FlotillaError("FORBIDDEN", "a token of one workspace must name a session", { field: "session_id" });
  }
}

function sessionOf(body: { session_id?: string | undefined; payload: Record<string, unknown> }): string | undefined {
  const inner = body.payload.session_id;
  if (typeof inner !== "string") return body.session_id;
  if (body.session_id !== undefined && body.session_id !== inner) {
    throw invalidInput("session_id differs from the payload's", "session_id");
  }
  return inner;
}

function workspaceIn(payload: Readonly<Record<string, unknown>>): string | undefined {
  return typeof payload.workspace === "string" ? payload.workspace : undefined;
}

/** The reference's answer `{status_code, headers, body}`; a failure is a problem document with the same members. */
async function enveloped(work: () => Promise<unknown>): Promise<Answer> {
  try {
    const body = (await work()) ?? null;
    return { status: 200, body: { status_code: 200, headers: { "content-type": "application/json" }, body } };
  } catch (thrown) {
    const error = ensureFlotillaError(thrown);
    if (error.disposition === "defect") throw error;
    const problem = problemOf(error);
    const headers = { "content-type": problemType };
    return {
      status: problem.status,
      headers,
      body: { ...problem, status_code: problem.status, headers, body: problem },
    };
  }
}

function workers({ bus }: HttpDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/workers",
    operation: "listWorkers",
    summary: "Workers of the fleet with their live instances.",
    role: "operator",
    responses: { 200: { description: "Workers", schema: schemas.Workers } },
    errors: [],
    async handle() {
      const rows = bus.registry.workers().map(({ manifest, instances }) => ({
        worker: manifest.worker,
        version: manifest.version,
        priority: manifest.priority,
        first_registered_at: manifest.first_registered_at,
        live: instances.length > 0,
        instances,
        functions: manifest.functions.map((fn) => fn.id),
        meta: manifest.meta,
      }));
      return { status: 200, body: { workers: rows.sort((a, b) => a.worker.localeCompare(b.worker)) } };
    },
  });
}

function functions({ bus }: HttpDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/functions",
    operation: "listFunctions",
    summary: "Every function of the fleet and the worker that a call reaches now.",
    role: "operator",
    responses: { 200: { description: "Functions", schema: schemas.Functions } },
    errors: [],
    async handle() {
      const instances = new Map(bus.registry.workers().map((row) => [row.manifest.worker, row.instances.length]));
      const rows = bus.registry.functions().map(({ worker, manifest, fn, live }) => ({
        ...fn,
        worker,
        version: manifest.version,
        live,
        instances: instances.get(worker) ?? 0,
      }));
      return { status: 200, body: { functions: rows.sort((a, b) => a.id.localeCompare(b.id)) } };
    },
  });
}

function ready({ readiness }: HttpDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/readyz",
    operation: "ready",
    summary: "200 when turns can run; `degraded` when something beside the turn is away.",
    role: "public",
    responses: {
      200: { description: "Ready or degraded", schema: schemas.Ready },
      503: { description: "Turns cannot run now", schema: schemas.Ready },
    },
    async handle() {
      const report = await readiness.report();
      return { status: report.status === "unavailable" ? 503 : 200, body: report };
    },
  });
}

function alive(): Route {
  return defineRoute({
    method: "GET",
    path: "/livez",
    operation: "alive",
    summary: "200 while the process answers.",
    role: "public",
    responses: { 200: { description: "Alive", schema: schemas.Alive } },
    handle: async () => ({ status: 200, body: { status: "alive" } }),
  });
}
