// approval::list: what waits for a human, of one session from the journal, of all from the projection.
import { approvalList, type PendingApproval } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import { awaitingCalls, pendingApproval } from "../domain/awaiting.ts";
import type { Decisions, PendingIndex } from "../ports.ts";

export interface ListDeps {
  readonly decisions: Decisions;
  readonly index: PendingIndex;
  readonly now: () => number;
}

/** In the order given. Drops what can no longer be decided: its time is over, or its decision is stored and not taken yet. */
async function stillOpen(deps: ListDeps, approvals: readonly PendingApproval[]): Promise<PendingApproval[]> {
  const now = deps.now();
  const open = await Promise.all(
    approvals.map(
      async (approval) =>
        approval.expires_at > now &&
        (await deps.decisions.decided(approval.session_id, approval.function_call_id)) === null,
    ),
  );
  return approvals.filter((_, index) => open[index]);
}

async function ofSession(deps: ListDeps, sessionId: string): Promise<PendingApproval[]> {
  const tail = await deps.decisions.tail(sessionId);
  const calls = awaitingCalls(tail);
  if (tail === null || calls.length === 0) return [];
  const args = await deps.decisions.argumentsOf(sessionId, tail, calls);
  return calls.map((call) => pendingApproval(sessionId, call, args.get(call.id)));
}

export async function listApprovals(deps: ListDeps, sessionId: string | undefined): Promise<PendingApproval[]> {
  const pending = sessionId === undefined ? await deps.index.all() : await ofSession(deps, sessionId);
  return stillOpen(deps, pending);
}

export function makeList(deps: ListDeps) {
  return implement(approvalList, async (_context, request) => ({
    approvals: await listApprovals(deps, request.session_id),
  }));
}
