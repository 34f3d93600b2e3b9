// Builders of journal records for tests: a session's commits without an orchestrator.
import {
  type AgentMessage,
  type CallRecord,
  type Commit,
  type CommitEvent,
  randomId,
  type SessionEntry,
  type TurnRecord,
} from "@flotilla/contracts";

export function aTurnRecord(over: Partial<TurnRecord> & { session_id: string }): TurnRecord {
  return {
    workspace: "default",
    state: "stopped",
    turn_id: "t-1",
    message_id: "m-1",
    turns: 1,
    turn_count: 1,
    request: {
      provider: "scripted",
      model: "play",
      fallback: [],
      mode: null,
      system_prompt: "",
      functions: [],
      max_turns: null,
      approval_ttl_ms: 60_000,
      thinking_level: null,
    },
    model_call: null,
    calls: [],
    assistant_entry_id: null,
    leaf: null,
    entry_count: 0,
    usage: {},
    turn_usage: {},
    traceparent: null,
    started_at_ms: 1,
    updated_at_ms: 1,
    turn_first_seq_no: 1,
    error: null,
    ...over,
  };
}

export function aCommit(over: Partial<Commit> & { session_id: string }): Commit {
  const at = over.at ?? 1;
  const workspace = over.workspace ?? "default";
  return {
    v: 1,
    commit_id: randomId(),
    seq_no: 1,
    workspace,
    turn_id: "t-1",
    owner: { instance: "test", epoch: 1 },
    anchor: 0,
    takeovers: 0,
    cursor: 0,
    pending: [],
    state: aTurnRecord({ session_id: over.session_id, workspace, updated_at_ms: at }),
    entries: [],
    events: [],
    ledger: [],
    timers: [],
    at,
    ...over,
  };
}

export function userEntry(id: string, text: string, parentId: string | null = null): SessionEntry {
  const message: AgentMessage = { role: "user", content: [{ type: "text", text }], timestamp: 1 };
  return { type: "message", id, parent_id: parentId, timestamp: 1, message };
}

/** A call that waits for a human, and the event that says so. */
export function awaitingCall(
  id: string,
  args: unknown,
  createdAt = 1,
): { call: CallRecord; event: Extract<CommitEvent, { type: "approval_requested" }> } {
  const shared = { function_id: "demo::refund", args_digest: `sha256:${id}` };
  const approval = { created_at: createdAt, expires_at: createdAt + 60_000 };
  return {
    call: { id, index: 0, status: "awaiting", attempt: 1, approval, ...shared },
    event: { type: "approval_requested", function_call_id: id, args, ...shared, ...approval },
  };
}
