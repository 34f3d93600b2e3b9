// Routes of sessions: turns in, state and transcript out, abort and inbox.
import { idPattern, sessionList } from "@flotilla/contracts";
import { FlotillaError, invalidInput } from "@flotilla/errors";
import { workspaceFor } from "../domain/tokens.ts";
import type { HttpDeps } from "./deps.ts";
import { defineRoute, headerOf, type Route, type RouteRequest } from "./route.ts";
import * as schemas from "./schemas.ts";

const listTimeoutMs = 3_000;

export function sessionRoutes(deps: HttpDeps): Route[] {
  return [startTurn(deps), listSessions(deps), getSession(deps), getMessages(deps), abortTurn(deps), pushInbox(deps)];
}

function startTurn({ doors }: HttpDeps): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/sessions/{sid}/turns",
    operation: "startTurn",
    summary: "Starts a turn: answers once the input is durable. Idempotent by message_id or Idempotency-Key.",
    role: "client",
    params: schemas.SessionParams,
    body: schemas.TurnBody,
    headers: { "idempotency-key": "Stands for message_id; when both are given they must be equal." },
    responses: { 202: { description: "Accepted and durable", schema: schemas.Accepted } },
    errors: [400, 404, 409, 413, 415, 422, 429, 503],
    async handle({ params, body, headers, identity }) {
      const messageId = messageIdOf(body.message_id, headers);
      const workspace = workspaceFor(identity, body.workspace);
      const accepted = await doors.start({
        ...body,
        session_id: params.sid,
        ...(messageId === undefined ? {} : { message_id: messageId }),
        ...(workspace === undefined ? {} : { workspace }),
      });
      return { status: 202, body: accepted };
    },
  });
}

/** The header stands for the field; both must say the same. */
function messageIdOf(
  field: string | undefined,
  headers: RouteRequest<unknown, unknown, unknown>["headers"],
): string | undefined {
  const header = headerOf(headers, "idempotency-key")?.replace(/^"(.*)"$/, "$1");
  if (header === undefined) return field;
  if (!idPattern.test(header)) {
    throw invalidInput("Idempotency-Key must be 1 to 64 characters of A-Z a-z 0-9 _ -", "idempotency-key");
  }
  if (field !== undefined && field !== header) {
    throw invalidInput("message_id and Idempotency-Key differ", "message_id");
  }
  return header;
}

function listSessions({ bus }: HttpDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/sessions",
    operation: "listSessions",
    summary: "Sessions, newest first.",
    role: "client",
    query: schemas.PageQuery,
    responses: { 200: { description: "One page", schema: schemas.SessionPage } },
    errors: [400, 503],
    async handle({ query, identity }) {
      const filter = identity.workspace === null ? {} : { workspace: identity.workspace };
      const options = { timeoutMs: listTimeoutMs, caller: "client" };
      return { status: 200, body: await bus.call(sessionList, { ...query, ...filter }, options) };
    },
  });
}

function getSession({ sessions }: HttpDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/sessions/{sid}",
    operation: "getSession",
    summary: "A session's state, usage and cost, from the journal.",
    role: "client",
    params: schemas.SessionParams,
    responses: { 200: { description: "The session", schema: schemas.Session } },
    errors: [400, 404, 503],
    async handle({ params, identity }) {
      await sessions.require(params.sid, identity);
      return { status: 200, body: await sessions.detail(params.sid) };
    },
  });
}

function getMessages({ sessions }: HttpDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/sessions/{sid}/messages",
    operation: "getMessages",
    summary: "The transcript, root to leaf.",
    role: "client",
    params: schemas.SessionParams,
    responses: { 200: { description: "The transcript", schema: schemas.Messages } },
    errors: [400, 404, 503],
    async handle({ params, identity }) {
      await sessions.require(params.sid, identity);
      return { status: 200, body: { messages: await sessions.messages(params.sid) } };
    },
  });
}

function abortTurn({ doors, sessions }: HttpDeps): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/sessions/{sid}/abort",
    operation: "abortTurn",
    summary: "Cancels the running turn and answers after it has ended. Closing a stream never cancels (I14).",
    role: "client",
    params: schemas.SessionParams,
    body: schemas.AbortBody,
    responses: { 200: { description: "Ended, or nothing ran", schema: schemas.Aborted } },
    errors: [400, 404, 503, 504],
    async handle({ params, body, identity }) {
      await sessions.require(params.sid, identity);
      const { reason } = body as { reason?: string | null };
      const aborted = await doors.abort({ session_id: params.sid, ...(reason == null ? {} : { reason }) });
      return { status: 200, body: aborted };
    },
  });
}

function pushInbox({ doors, sessions }: HttpDeps): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/sessions/{sid}/inbox/{name}",
    operation: "pushInbox",
    summary: "Steers the running turn, or queues a follow-up for it. Idempotent by message_id.",
    role: "client",
    params: schemas.InboxParams,
    body: schemas.InboxBody,
    headers: { "idempotency-key": "Stands for message_id; when both are given they must be equal." },
    responses: { 202: { description: "Durable", schema: schemas.InboxAccepted } },
    errors: [400, 404, 409, 413, 415, 429, 503],
    async handle({ params, body, headers, identity }) {
      await sessions.require(params.sid, identity);
      const messageId = messageIdOf(body.message_id, headers);
      const accepted = await doors.inbox(params.name, {
        session_id: params.sid,
        messages: body.messages,
        ...(messageId === undefined ? {} : { message_id: messageId }),
      });
      return { status: 202, body: accepted };
    },
  });
}

export function notFound(): never {
  throw new FlotillaError("NOT_FOUND", "there is nothing at this address; /openapi.json lists what there is");
}
