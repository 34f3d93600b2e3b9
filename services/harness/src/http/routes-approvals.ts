// Routes of approvals: what waits for a person, and the person's word.
import { approvalList, approvalResolve, type PendingApproval } from "@flotilla/contracts";
import { FlotillaError, isFlotillaError } from "@flotilla/errors";
import type { Identity } from "../domain/tokens.ts";
import type { HttpDeps } from "./deps.ts";
import { defineRoute, type Route } from "./route.ts";
import * as schemas from "./schemas.ts";

/** With the gate at zero a person learns so soon. */
const gateTimeoutMs = 3_000;

export function approvalRoutes(deps: HttpDeps): Route[] {
  return [listApprovals(deps), resolveApproval(deps)];
}

function listApprovals({ bus, sessions }: HttpDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/approvals",
    operation: "listApprovals",
    summary: "Calls that wait for a decision.",
    role: "approver",
    query: schemas.ApprovalsQuery,
    responses: { 200: { description: "Pending ones only", schema: schemas.Approvals } },
    errors: [400, 404, 503],
    async handle({ query, identity }) {
      if (query.session_id !== undefined) await sessions.require(query.session_id, identity);
      const options = { timeoutMs: gateTimeoutMs, caller: "client" };
      const { approvals } = await throughGate(() => bus.call(approvalList, query, options));
      return { status: 200, body: { approvals: await visible(approvals, identity) } };
    },
  });

  async function visible(approvals: PendingApproval[], identity: Identity): Promise<PendingApproval[]> {
    if (identity.workspace === null) return approvals;
    const ids = [...new Set(approvals.map((approval) => approval.session_id))];
    const seen = await Promise.all(ids.map((id) => sessions.isVisible(id, identity)));
    const mine = new Set(ids.filter((_, index) => seen[index] === true));
    return approvals.filter((approval) => mine.has(approval.session_id));
  }
}

function resolveApproval({ bus, sessions }: HttpDeps): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/sessions/{sid}/approvals/{call_id}",
    operation: "resolveApproval",
    summary: "Decides one parked call, bound to its id and the digest of its arguments; the first decision wins.",
    role: "approver",
    params: schemas.CallParams,
    body: schemas.DecisionBody,
    responses: { 200: { description: "Durable", schema: schemas.Decided } },
    errors: [400, 404, 409, 503],
    async handle({ params, body, identity }) {
      await sessions.require(params.sid, identity);
      const request = { session_id: params.sid, function_call_id: params.call_id, ...body };
      const options = { timeoutMs: gateTimeoutMs, caller: "client", sessionId: params.sid };
      return { status: 200, body: await throughGate(() => bus.call(approvalResolve, request, options)) };
    },
  });
}

/** That nobody offers the function means that no gate ever ran here: not the caller's mistake. */
async function throughGate<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isFlotillaError(error) || (error.code !== "FUNCTION_NOT_FOUND" && error.code !== "TIMEOUT")) throw error;
    const options = { retryAfterMs: 2_000, cause: error };
    throw new FlotillaError("WORKER_UNAVAILABLE", "no approval gate answers", options);
  }
}
