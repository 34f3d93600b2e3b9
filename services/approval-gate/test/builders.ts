// Commits, calls and inputs of a session as an orchestrator would store them.
import {
  type ApprovalBody,
  argumentsDigest,
  type CallRecord,
  type Commit,
  type CommitEvent,
  type CommitKind,
  type SessionEntry,
  type StoredCommit,
  type StoredInput,
  type TurnRecord,
} from "@flotilla/contracts";
import { aTurnRecord } from "@flotilla/testkit";

export interface AskedCall {
  readonly id: string;
  readonly functionId?: string;
  readonly args?: unknown;
  readonly status?: CallRecord["status"];
  readonly createdAt?: number;
  readonly expiresAt?: number;
  readonly reason?: string;
}

export const digestOf = (call: AskedCall): string =>
  argumentsDigest(call.functionId ?? "demo::refund", call.args ?? { order: call.id });

export function aCall(asked: AskedCall, index = 0): CallRecord {
  const status = asked.status ?? "awaiting";
  return {
    id: asked.id,
    index,
    function_id: asked.functionId ?? "demo::refund",
    args_digest: digestOf(asked),
    status,
    attempt: 1,
    ...(status === "awaiting"
      ? {
          approval: {
            created_at: asked.createdAt ?? 1_000,
            expires_at: asked.expiresAt ?? Date.now() + 3_600_000,
            ...(asked.reason === undefined ? {} : { reason: asked.reason }),
          },
        }
      : {}),
  };
}

export function aTurn(sessionId: string, calls: readonly AskedCall[], state?: TurnRecord["state"]): TurnRecord {
  return aTurnRecord({
    session_id: sessionId,
    state: state ?? "function_awaiting_approval",
    calls: calls.map(aCall),
    assistant_entry_id: "t-1-1-1",
    leaf: "t-1-1-1",
    entry_count: 1,
  });
}

export function anAssistantEntry(calls: readonly AskedCall[]): SessionEntry {
  return {
    type: "message",
    id: "t-1-1-1",
    parent_id: null,
    timestamp: 1_000,
    message: {
      role: "assistant",
      content: calls.map((call) => ({
        type: "function_call",
        id: call.id,
        function_id: call.functionId ?? "demo::refund",
        arguments: call.args ?? { order: call.id },
      })),
      stop_reason: "function_call",
      model: "play",
      provider: "scripted",
      timestamp: 1_000,
    },
  };
}

export function anApprovalRequested(call: AskedCall): CommitEvent {
  return {
    type: "approval_requested",
    function_call_id: call.id,
    function_id: call.functionId ?? "demo::refund",
    args: call.args ?? { order: call.id },
    args_digest: digestOf(call),
    created_at: 1_000,
    expires_at: call.expiresAt ?? 2_000,
  };
}

export function stored(seq: number, commit: Commit, kind: CommitKind = "idle"): StoredCommit {
  return { seq, kind, commit };
}

export function aDecision(decision: ApprovalBody["decision"]): StoredInput<ApprovalBody> {
  return {
    seq: 9,
    kind: "approval",
    id: "c1",
    digest: null,
    at: 5_000,
    body: { function_call_id: "c1", args_digest: "sha256:0", decision, reason: null, decided_by: "client" },
  };
}
