// Which calls of a session wait for a human, read from its newest commit. Pure.
import type { ApprovalRecord, CallRecord, PendingApproval, StoredCommit } from "@flotilla/contracts";

export type AwaitingCall = CallRecord & { readonly approval: ApprovalRecord };

/** Also while siblings of the batch still run: a call waits from the commit that asks for it. */
export function awaitingCalls(tail: StoredCommit | null): AwaitingCall[] {
  const calls = tail?.commit.state?.calls ?? [];
  return calls.filter((call): call is AwaitingCall => call.status === "awaiting" && call.approval !== undefined);
}

export function pendingApproval(sessionId: string, call: AwaitingCall, args: unknown): PendingApproval {
  return {
    session_id: sessionId,
    function_call_id: call.id,
    function_id: call.function_id,
    args,
    args_digest: call.args_digest,
    ...(call.approval.reason === undefined ? {} : { reason: call.approval.reason }),
    created_at: call.approval.created_at,
    expires_at: call.approval.expires_at,
  };
}
