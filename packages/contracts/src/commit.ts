// The commit: one message that carries everything a step changed (commit-design.md), and the records inside it.
import type { AgentMessage, ErrorKind, FunctionResult, Usage } from "./messages.ts";
import type { ThinkingLevel } from "./models.ts";
import type { CommitKind, InputKind } from "./subjects.ts";

export const turnStates = [
  "provisioning",
  "assistant_streaming",
  "function_execute",
  "function_awaiting_approval",
  "steering_check",
  "stopped",
  "failed",
] as const;
export type TurnState = (typeof turnStates)[number];

export function isTerminalState(state: TurnState): boolean {
  return state === "stopped" || state === "failed";
}

/** What one turn was asked to do; frozen at its start input. */
export interface TurnRequest {
  provider: string;
  model: string;
  fallback: { provider: string; model: string }[];
  mode: "plan" | "ask" | "agent" | null;
  system_prompt: string;
  functions: string[];
  max_turns: number | null;
  approval_ttl_ms: number;
  thinking_level: ThinkingLevel | null;
}

/** The model call of the open step; its key is the intent (I4). `attempt` counts from 1 over the whole chain. */
export interface OpenModelCall {
  key: string;
  worker: string;
  function_id: string;
  message_id: string;
  attempt: number;
  /** Retries used on the current model of the chain. */
  retries: number;
  /** 0 = the request's own model, n = `fallback[n - 1]`. */
  chain_index: number;
  provider: string;
  model: string;
  started_at_ms: number;
  /** Set while the session waits for a retry: no call is open, the next starts at this time. */
  retry_at_ms?: number;
}

export type CallStatus =
  /** Allowed, waits for its turn (sequential functions); no intent yet. */
  | "ready"
  /** Intent recorded: may be running. */
  | "running"
  /** Parked on a human decision. */
  | "awaiting"
  /** Its result is in the ledger. */
  | "settled";

export interface ApprovalRecord {
  created_at: number;
  expires_at: number;
  reason?: string;
}

/** One tool call of the open step. Its arguments are in the assistant entry, its result in the ledger. */
export interface CallRecord {
  id: string;
  index: number;
  function_id: string;
  args_digest: string;
  status: CallStatus;
  attempt: number;
  key?: string;
  worker?: string;
  replay?: "never" | "safe" | "keyed";
  execution?: "parallel" | "sequential";
  timeout_ms?: number;
  started_at_ms?: number;
  approval?: ApprovalRecord;
  /** Set once a human allowed it; policy is asked again at release. */
  approved?: boolean;
}

export interface TurnError {
  kind: string;
  code: string;
  message: string;
  error_kind?: ErrorKind;
}

/** The small turn record (contracts.md 2.6). Its size does not grow with the conversation (I12). */
export interface TurnRecord {
  session_id: string;
  workspace: string;
  state: TurnState;
  turn_id: string;
  message_id: string;
  /** Turns this session has opened, this one included. */
  turns: number;
  /** Model calls of this turn; also the step number in keys and ids. */
  turn_count: number;
  request: TurnRequest;
  model_call: OpenModelCall | null;
  /** The batch of the open step, in the model's order; empty outside function_execute and function_awaiting_approval. */
  calls: CallRecord[];
  assistant_entry_id: string | null;
  /** Newest entry of the active branch; null in an empty session. */
  leaf: string | null;
  entry_count: number;
  usage: Usage;
  turn_usage: Usage;
  traceparent: string | null;
  /** The session's turn before this one: where the trace of this turn links to. */
  previous_turn?: { turn_id: string; traceparent: string | null };
  started_at_ms: number;
  updated_at_ms: number;
  /** Stream sequence of the first commit of the newest turn; 0 before the first (set from the turn's start commit). */
  turn_first_seq_no: number;
  /** Function calls that ended the turn by `terminate` are all true. */
  error: TurnError | null;
}

export interface MessageEntry {
  type: "message";
  id: string;
  parent_id: string | null;
  timestamp: number;
  message: AgentMessage;
}
export type SessionEntry = MessageEntry;

/** Why a turn ended. */
export type EndReason = "end" | "aborted" | "interrupted" | "error" | "max_turns" | "terminated" | "failed";

/** Events of a commit in their stored form; the harness expands those that refer to entries or ledger records. */
export type CommitEvent =
  | {
      type: "turn_state_changed";
      event_type: "state:created" | "state:updated";
      new_value: TurnStateView;
      old_value?: TurnStateView;
    }
  /** Refers to the entry `entry_id` of the same commit. */
  | { type: "message_complete"; message_id: string; entry_id: string; body_streamed: boolean }
  | { type: "message_aborted"; message_id: string; reason: string }
  | { type: "function_execution_start"; function_call_id: string; function_id: string; args: unknown }
  /** Refers to the ledger outcome of `function_call_id` of the same commit. */
  | {
      type: "function_execution_end";
      function_call_id: string;
      function_id: string;
      is_error: boolean;
      duration_ms: number;
    }
  | {
      type: "approval_requested";
      function_call_id: string;
      function_id: string;
      args: unknown;
      args_digest: string;
      reason?: string;
      created_at: number;
      expires_at: number;
    }
  | {
      type: "approval_decided";
      function_call_id: string;
      function_id: string;
      decision: "allow" | "deny" | "expired" | "aborted";
      reason?: string;
    }
  /** `entry_id` of the assistant message and of the results that this step added. */
  | { type: "turn_end"; entry_id: string | null; result_entry_ids: string[] }
  | { type: "agent_end"; turn_id: string; reason: EndReason; messages: [] }
  | { type: "input_rejected"; kind: InputKind; id: string; code: string; message: string };

export interface AwaitingApproval {
  function_call_id: string;
  function_id: string;
  args_digest: string;
  created_at: number;
  expires_at: number;
  reason?: string;
}

export interface TurnStateView {
  session_id: string;
  state: TurnState;
  turn_id: string;
  turn_count: number;
  max_turns?: number;
  awaiting_approval: AwaitingApproval[];
  error?: TurnError;
}

export type LedgerRecord =
  | {
      kind: "intent";
      key: string;
      call_id: string | null;
      worker: string;
      function_id: string;
      replay: "never" | "safe" | "keyed";
      attempt: number;
      at: number;
    }
  /** `key` is null for a call that never ran (denied, expired, skipped, unknown function). */
  | {
      kind: "outcome";
      key: string | null;
      call_id: string | null;
      function_id: string;
      status: "done" | "failed" | "cancelled" | "unknown" | "not_run";
      result?: FunctionResult;
      is_error: boolean;
      duration_ms: number;
      usage?: Usage;
      at: number;
    };

export interface PendingInput {
  seq: number;
  kind: InputKind;
  id: string;
  /** A start with `on_busy: interrupt`. */
  interrupts?: true;
}

export interface TimerRecord {
  name: string;
  due_at: number;
}

export interface Commit {
  v: 1;
  /** Fresh and random per attempt by one writer; equals `Nats-Msg-Id`. */
  commit_id: string;
  seq_no: number;
  session_id: string;
  workspace: string;
  turn_id: string;
  owner: { instance: string; epoch: number };
  /** Stream sequence of the `c.step` message that the owner holds; 0 in a `c.step` itself. */
  anchor: number;
  takeovers: number;
  /** A planned hand-over (SIGTERM): the take-over that follows it is not counted as a crash. */
  handover?: true;
  cursor: number;
  pending: PendingInput[];
  state: TurnRecord | null;
  entries: SessionEntry[];
  events: CommitEvent[];
  ledger: LedgerRecord[];
  timers: TimerRecord[];
  at: number;
}

export interface StoredCommit {
  seq: number;
  kind: CommitKind;
  commit: Commit;
}

export interface StoredInput<B = unknown> {
  seq: number;
  kind: InputKind;
  id: string;
  digest: string | null;
  body: B;
  /** Why the body, which is null then, could not be read. */
  unreadable?: string;
  /** Epoch ms at which the server stored it. */
  at: number;
}

export interface StartBody {
  session_id: string;
  message_id: string;
  turn_id: string;
  workspace: string;
  on_busy: "reject" | "queue" | "steer" | "interrupt";
  messages: AgentMessage[];
  request: TurnRequest;
  traceparent: string | null;
}
export interface InboxBody {
  messages: AgentMessage[];
}
export interface AbortBody {
  turn_id: string | null;
  reason: string | null;
}
export interface ApprovalBody {
  function_call_id: string;
  args_digest: string;
  decision: "allow" | "deny" | "expired" | "aborted";
  reason: string | null;
  decided_by: string;
  /** Fresh and random per decision: a decider whose publish had an unknown fate recognises its own. */
  decision_id?: string;
}
export interface AppendBody {
  parent_id: string | null;
  messages: AgentMessage[];
}
export interface DrainBody {
  name: "steering" | "followup";
}
export interface TimerBody {
  name: string;
  due_at: number;
}
