// approval::resolve: one decision about one call, bound to its id and the digest of its arguments; the first wins.
import { type ApprovalBody, approvalResolve, randomId } from "@flotilla/contracts";
import { FlotillaError, invalidInput } from "@flotilla/errors";
import { implement } from "@flotilla/worker";
import type { z } from "zod";
import { type AwaitingCall, awaitingCalls } from "../domain/awaiting.ts";
import { alreadyDecided, pastItsTime, unknownCall, wrongDigest } from "../domain/refusal.ts";
import type { Audit, Decisions } from "../ports.ts";

export interface ResolveDeps {
  readonly decisions: Decisions;
  readonly audit: Audit;
  readonly now: () => number;
}

type ResolveRequest = z.output<typeof approvalResolve.request>;

async function decidable(deps: ResolveDeps, request: ResolveRequest): Promise<AwaitingCall> {
  const { session_id: sessionId, function_call_id: callId } = request;
  const call = awaitingCalls(await deps.decisions.tail(sessionId)).find((candidate) => candidate.id === callId);
  const isExpired = call !== undefined && deps.now() >= call.approval.expires_at;
  if (call === undefined || isExpired) {
    const decided = await deps.decisions.decided(sessionId, callId);
    if (decided !== null) throw alreadyDecided(decided);
    throw call === undefined ? unknownCall(callId) : pastItsTime(call.approval.expires_at);
  }
  if (request.args_digest !== call.args_digest) throw wrongDigest();
  return call;
}

export async function resolveApproval(
  deps: ResolveDeps,
  request: ResolveRequest,
  decidedBy: string,
): Promise<{ ok: true }> {
  if (request.args_digest === "") throw invalidInput("args_digest must not be empty", "args_digest");
  // The policy's kernel denies this too; a second lock on the one door that lets calls through.
  if (decidedBy === "agent") throw new FlotillaError("FORBIDDEN", "an agent may not decide about approvals");
  const call = await decidable(deps, request);
  const body: ApprovalBody = {
    function_call_id: call.id,
    args_digest: call.args_digest,
    decision: request.decision,
    reason: request.reason ?? null,
    decided_by: decidedBy,
    decision_id: randomId(),
  };
  const first = await deps.decisions.decide(request.session_id, body);
  if (first !== null) throw alreadyDecided(first);
  await deps.audit({
    action: "approval.decided",
    session_id: request.session_id,
    function_call_id: call.id,
    function_id: call.function_id,
    decision: request.decision,
    decided_by: decidedBy,
    args_digest: call.args_digest,
    reason: body.reason,
    at: deps.now(),
  });
  return { ok: true };
}

export function makeResolve(deps: ResolveDeps) {
  return implement(approvalResolve, (context, request) => resolveApproval(deps, request, context.caller));
}
