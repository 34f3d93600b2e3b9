// The events of the SSE stream as a client sees them (wire.md 3).
import type { CommitEvent, EndReason, TurnState, TurnStateView } from "./commit.ts";
import type { AgentMessage, FunctionResult, MessageWithEntryId } from "./messages.ts";

export type WireEvent =
  | Extract<
      CommitEvent,
      {
        type:
          | "turn_state_changed"
          | "message_aborted"
          | "function_execution_start"
          | "approval_requested"
          | "approval_decided"
          | "input_rejected";
      }
    >
  | { type: "snapshot"; state: (TurnStateView & { usage?: unknown }) | null; messages: MessageWithEntryId[] }
  | { type: "message_update"; message_id: string; index: number; offset: number; kind: BlockKind; delta: string }
  | { type: "message_complete"; message_id: string; entry_id: string; message: AgentMessage; body_streamed: boolean }
  | {
      type: "function_execution_end";
      function_call_id: string;
      function_id: string;
      result: FunctionResult;
      is_error: boolean;
      duration_ms: number;
    }
  | { type: "turn_end"; message: AgentMessage | null; function_results: AgentMessage[] }
  | { type: "agent_end"; turn_id: string; reason: EndReason; messages: [] };

export type BlockKind = "text" | "thinking" | "function_call";

/**
 * One piece of a streaming message, sent by a provider on core `tokens.<sid>` and, joined, stored on
 * `delta.<sid>.<message_id>`. `offset` is in UTF-16 units within the block; `n` counts frames of the message from 0.
 */
export interface TokenFrame {
  turn_id: string;
  message_id: string;
  n: number;
  block: number;
  kind: BlockKind;
  offset: number;
  text: string;
}

export interface SessionSummary {
  session_id: string;
  state: TurnState;
  turn_id: string;
  turn_count: number;
  updated_at: number;
  workspace: string;
  last_message_summary?: string;
  entry_count: number;
  cost_usd: number;
}
