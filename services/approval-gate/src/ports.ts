// What the gate needs from outside, and the records it hands over.
import type { ApprovalBody, PendingApproval, StoredCommit, StoredInput } from "@flotilla/contracts";
import type { AwaitingCall } from "./domain/awaiting.ts";

/** The journal as the gate sees it. */
export interface Decisions {
  /** The session's newest commit, from the stream leader. Contract: throws SESSION_NOT_FOUND for an unknown session. */
  tail(sessionId: string): Promise<StoredCommit | null>;
  /** The decision that is stored for a call, or null. */
  decided(sessionId: string, callId: string): Promise<StoredInput<ApprovalBody> | null>;
  /** I1, I6: durable before it resolves; null when stored, otherwise the decision that was first. */
  decide(sessionId: string, body: ApprovalBody): Promise<StoredInput<ApprovalBody> | null>;
  /** The arguments of waiting calls, by call id. */
  argumentsOf(sessionId: string, tail: StoredCommit, calls: readonly AwaitingCall[]): Promise<Map<string, unknown>>;
}

/** Pending approvals of all sessions, from the projection. Contract: throws STORE_UNAVAILABLE while it is away. */
export interface PendingIndex {
  all(): Promise<PendingApproval[]>;
}

export interface AuditRecord {
  readonly action: "approval.decided";
  readonly session_id: string;
  readonly function_call_id: string;
  readonly function_id: string;
  readonly decision: "allow" | "deny";
  readonly decided_by: string;
  readonly args_digest: string;
  readonly reason: string | null;
  readonly at: number;
}
/** Contract: never throws; a record that could not be stored is logged and counted. */
export type Audit = (record: AuditRecord) => Promise<void>;
