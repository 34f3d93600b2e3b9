// What GET /v1/sessions/{sid} says: the newest commit, and a start that is accepted but not taken yet. Pure.
import {
  type AwaitingApproval,
  isTerminalState,
  type StartBody,
  type StoredCommit,
  type StoredInput,
  stateViewOf,
  type TurnStateView,
  turnIdOf,
  type Usage,
} from "@flotilla/contracts";
import { costUsd, usageAtEdge } from "./money.ts";

export interface SessionDetail extends TurnStateView {
  awaiting_approval: (AwaitingApproval & { args?: unknown })[];
  workspace: string;
  turns: number;
  entry_count: number;
  usage: Usage;
  cost_usd: number;
  updated_at: number;
}

/** `outstanding`: the inputs after the newest commit's cursor, in order. */
export function sessionDetail(
  sessionId: string,
  tail: StoredCommit | null,
  outstanding: readonly StoredInput[],
): SessionDetail {
  const start = outstanding.find((input) => input.kind === "start") as StoredInput<StartBody> | undefined;
  const state = tail?.commit.state ?? null;
  const base = {
    session_id: sessionId,
    workspace: workspaceOf(tail, outstanding) ?? "default",
    turns: state?.turns ?? 0,
    entry_count: state?.entry_count ?? 0,
    usage: usageAtEdge(state?.usage ?? {}),
    cost_usd: costUsd(state?.usage),
    updated_at: tail?.commit.at ?? outstanding.at(-1)?.at ?? 0,
  };
  if (state !== null && !isTerminalState(state.state)) return { ...base, ...stateViewOf(state) };
  const queued = tail?.commit.pending.find((input) => input.kind === "start");
  const turnId = start?.body.turn_id ?? (queued === undefined ? null : turnIdOf(sessionId, queued.id));
  if (state !== null && turnId === null) return { ...base, ...stateViewOf(state) };
  // Accepted means durable (I1): the turn exists from its input on, though no orchestrator has opened it yet.
  return { ...base, state: "provisioning", turn_id: turnId ?? "", turn_count: 0, awaiting_approval: [] };
}

/** The workspace a session was made in: of its newest commit, or of the start that no commit has taken yet. */
export function workspaceOf(tail: StoredCommit | null, outstanding: readonly StoredInput[]): string | null {
  if (tail !== null) return tail.commit.workspace;
  const start = outstanding.find((input) => input.kind === "start") as StoredInput<StartBody> | undefined;
  return start?.body.workspace ?? null;
}
