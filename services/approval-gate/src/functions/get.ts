// approval::get: one pending approval with the arguments that will run, or why it is not pending.
import { approvalGet, type PendingApproval } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import { awaitingCalls, pendingApproval } from "../domain/awaiting.ts";
import { alreadyDecided, pastItsTime, unknownCall } from "../domain/refusal.ts";
import type { Decisions } from "../ports.ts";

export interface GetDeps {
  readonly decisions: Decisions;
  readonly now: () => number;
}

export async function getApproval(deps: GetDeps, sessionId: string, callId: string): Promise<PendingApproval> {
  const { decisions } = deps;
  const tail = await decisions.tail(sessionId);
  const decided = await decisions.decided(sessionId, callId);
  if (decided !== null) throw alreadyDecided(decided);
  const call = awaitingCalls(tail).find((candidate) => candidate.id === callId);
  if (tail === null || call === undefined) throw unknownCall(callId);
  if (deps.now() >= call.approval.expires_at) throw pastItsTime(call.approval.expires_at);
  const args = await decisions.argumentsOf(sessionId, tail, [call]);
  return pendingApproval(sessionId, call, args.get(callId));
}

export function makeGet(deps: GetDeps) {
  return implement(approvalGet, async (_context, request) => ({
    approval: await getApproval(deps, request.session_id, request.function_call_id),
  }));
}
