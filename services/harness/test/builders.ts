// Builders of commits, messages and frames for the tests of the front door.
import {
  type AssistantMessage,
  assistantMessageId,
  type Commit,
  type CommitEvent,
  type ContentBlock,
  type OpenModelCall,
  type SessionEntry,
  type StoredCommit,
  type TokenFrame,
  type TurnRecord,
  type TurnState,
} from "@flotilla/contracts";

export const at = 1_764_600_000_000;

export function anAssistant(content: ContentBlock[], rest: Partial<AssistantMessage> = {}): AssistantMessage {
  const usage = { input: 3, output: 5, cost_microusd: 13 };
  const base = { role: "assistant", stop_reason: "end", usage, model: "play", provider: "scripted" } as const;
  return { ...base, content, timestamp: at, ...rest };
}

export function aText(text: string): ContentBlock {
  return { type: "text", text };
}

export function anEntry(id: string, message: SessionEntry["message"], parent: string | null = null): SessionEntry {
  return { type: "message", id, parent_id: parent, timestamp: at, message };
}

export function aModelCall(messageId: string, rest: Partial<OpenModelCall> = {}): OpenModelCall {
  const base = { key: `scripted.${messageId}`, worker: "provider-scripted", function_id: "provider::scripted::stream" };
  const counts = { attempt: 1, retries: 0, chain_index: 0, provider: "scripted", model: "play", started_at_ms: at };
  return { ...base, ...counts, message_id: messageId, ...rest };
}

export function aRecord(rest: Partial<TurnRecord> = {}): TurnRecord {
  return {
    session_id: "s1",
    workspace: "default",
    state: "assistant_streaming",
    turn_id: "t-1",
    message_id: "m1",
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
      approval_ttl_ms: 1000,
      thinking_level: null,
    },
    model_call: null,
    calls: [],
    assistant_entry_id: null,
    leaf: null,
    entry_count: 0,
    usage: { input: 3, output: 5, cost_microusd: 13 },
    turn_usage: {},
    traceparent: null,
    started_at_ms: at,
    updated_at_ms: at,
    turn_first_seq_no: 0,
    error: null,
    ...rest,
  };
}

let commits = 0;

export function aCommit(seqNo: number, rest: Partial<Commit> = {}): Commit {
  const state = rest.state === undefined ? aRecord() : rest.state;
  return {
    v: 1,
    commit_id: `c${++commits}-${Math.random().toString(36).slice(2)}`,
    seq_no: seqNo,
    session_id: state?.session_id ?? "s1",
    workspace: state?.workspace ?? "default",
    turn_id: state?.turn_id ?? "t-1",
    owner: { instance: "i1", epoch: 1 },
    anchor: 0,
    takeovers: 0,
    cursor: 0,
    pending: [],
    entries: [],
    events: [],
    ledger: [],
    timers: [],
    at,
    ...rest,
    state,
  };
}

export function stored(seq: number, commit: Commit, kind: StoredCommit["kind"] = "run"): StoredCommit {
  return { seq, kind, commit };
}

export function aStateChange(state: TurnState, turnId = "t-1"): CommitEvent {
  const view = { session_id: "s1", state, turn_id: turnId, turn_count: 1, awaiting_approval: [] };
  return { type: "turn_state_changed", event_type: "state:updated", new_value: view };
}

export function aCompletion(messageId: string, entryId: string, streamed = true): CommitEvent {
  return { type: "message_complete", message_id: messageId, entry_id: entryId, body_streamed: streamed };
}

export function aFrame(messageId: string, n: number, block: number, offset: number, text: string): TokenFrame {
  return { turn_id: "t-1", message_id: messageId, n, block, kind: "text", offset, text };
}

/** The commits of one plain turn: opened, answered with `message`, ended. */
export function aTurn(options: {
  turnId: string;
  message: AssistantMessage;
  /** `seq_no` of the first commit. */
  seqNo: number;
  sessionId?: string;
  parent?: string | null;
  streamed?: boolean;
}): { commits: Commit[]; messageId: string; entryId: string } {
  const { turnId, message, seqNo, parent = null } = options;
  const messageId = assistantMessageId(turnId, 1, 1);
  const entryId = `e-${messageId}`;
  const base = { session_id: options.sessionId ?? "s1", turn_id: turnId };
  const userId = `u-${turnId}`;
  const user = anEntry(userId, { role: "user", content: [aText("hi")], timestamp: at }, parent);
  const open = aCommit(seqNo, {
    state: aRecord({ ...base, leaf: userId, model_call: aModelCall(messageId) }),
    entries: [user],
    events: [aStateChange("provisioning", turnId), aStateChange("assistant_streaming", turnId)],
  });
  const end = aCommit(seqNo + 1, {
    state: aRecord({ ...base, state: "stopped", leaf: entryId, assistant_entry_id: entryId }),
    entries: [anEntry(entryId, message, userId)],
    events: [
      aCompletion(messageId, entryId, options.streamed ?? true),
      { type: "turn_end", entry_id: entryId, result_entry_ids: [] },
      aStateChange("stopped", turnId),
      { type: "agent_end", turn_id: turnId, reason: "end", messages: [] },
    ],
  });
  return { commits: [open, end], messageId, entryId };
}

/** Cuts the blocks of a message into live frames of the given sizes (cycled). */
export function framesOf(messageId: string, content: readonly ContentBlock[], sizes: readonly number[]): TokenFrame[] {
  const frames: TokenFrame[] = [];
  for (const [block, part] of content.entries()) {
    const text =
      part.type === "function_call" ? JSON.stringify(part.arguments) : part.type === "image" ? "" : part.text;
    const kind = part.type === "image" ? "text" : part.type;
    for (let offset = 0; offset < text.length; ) {
      const size = sizes[frames.length % sizes.length] ?? 1;
      const piece = text.slice(offset, offset + size);
      frames.push({ turn_id: "t-1", message_id: messageId, n: frames.length, block, kind, offset, text: piece });
      offset += piece.length;
    }
  }
  return frames;
}

/** Joins neighbouring frames of a block, as a provider stores them. */
export function joined(frames: readonly TokenFrame[]): TokenFrame[] {
  const chunks: TokenFrame[] = [];
  for (const frame of frames) {
    const last = chunks.at(-1);
    if (last !== undefined && last.block === frame.block) last.text += frame.text;
    else chunks.push({ ...frame });
  }
  return chunks;
}
