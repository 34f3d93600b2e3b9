// The next commit while it is being made: a copy of the tail's state and everything the step adds to it. Pure.
import {
  type AgentMessage,
  type CallRecord,
  type CommitEvent,
  type LedgerRecord,
  type PendingInput,
  type SessionEntry,
  type SessionView,
  stateViewOf,
  type TimerRecord,
  type TurnRecord,
  type TurnState,
} from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";

export interface Draft {
  state: TurnRecord | null;
  cursor: number;
  pending: PendingInput[];
  entries: SessionEntry[];
  events: CommitEvent[];
  ledger: LedgerRecord[];
  timers: TimerRecord[];
  /** Effects of the open step are settled: the take-over count starts anew. */
  isSettled: boolean;
  readonly now: number;
}

export function draftFrom(view: SessionView, now: number): Draft {
  const tail = view.tail?.commit;
  return {
    state: view.state === null ? null : structuredClone(view.state),
    cursor: tail?.cursor ?? 0,
    pending: [...(tail?.pending ?? [])],
    entries: [],
    events: [],
    ledger: [],
    timers: [...(tail?.timers ?? [])],
    isSettled: false,
    now,
  };
}

/** The turn record of a draft inside a turn. */
export function turnOf(draft: Draft): TurnRecord {
  if (draft.state === null) throw new FlotillaError("TURN_INVARIANT", "a step needs an open turn");
  return draft.state;
}

/** `change`: what else changes with the state, so that the event shows all of it before and after. */
export function moveTo(draft: Draft, state: TurnState, change: (turn: TurnRecord) => void = () => {}): void {
  const turn = turnOf(draft);
  const before = stateViewOf(turn);
  change(turn);
  if (turn.state === state) return;
  turn.state = state;
  turn.updated_at_ms = draft.now;
  draft.events.push({
    type: "turn_state_changed",
    event_type: "state:updated",
    new_value: stateViewOf(turn),
    old_value: before,
  });
}

/** Appends to the active branch; the id is derived, so a repeated step adds nothing new. */
export function addEntry(draft: Draft, id: string, message: AgentMessage): void {
  const turn = turnOf(draft);
  draft.entries.push({ type: "message", id, parent_id: turn.leaf, timestamp: draft.now, message });
  turn.leaf = id;
  turn.entry_count += 1;
}

export function callsWith(draft: Draft, ...statuses: CallRecord["status"][]): CallRecord[] {
  return turnOf(draft).calls.filter((call) => statuses.includes(call.status));
}

export function isChanged(draft: Draft, view: SessionView): boolean {
  const tail = view.tail?.commit;
  return (
    draft.entries.length + draft.events.length + draft.ledger.length > 0 ||
    draft.cursor !== (tail?.cursor ?? 0) ||
    draft.pending.length !== (tail?.pending.length ?? 0)
  );
}
