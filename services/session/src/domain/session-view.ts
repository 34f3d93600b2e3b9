// One session's state as `session-tree::get` answers it (wire.md 2). Pure.
import { type StartBody, type StoredCommit, type StoredInput, stateViewOf } from "@flotilla/contracts";

/** `waiting`: inputs that no commit has taken yet; a first start among them names the turn that is about to open. */
export function sessionView(
  sessionId: string,
  tail: StoredCommit | null,
  waiting: readonly StoredInput[],
): Record<string, unknown> {
  const state = tail?.commit.state ?? null;
  if (state === null) return notYetOpened(sessionId, tail, waiting);
  const { cost_microusd: microUsd = 0, ...usage } = state.usage;
  return {
    ...stateViewOf(state),
    workspace: state.workspace,
    message_id: state.message_id,
    turns: state.turns,
    entry_count: state.entry_count,
    leaf: state.leaf,
    started_at: state.started_at_ms,
    updated_at: state.updated_at_ms,
    usage,
    cost_usd: microUsd / 1e6,
  };
}

function notYetOpened(
  sessionId: string,
  tail: StoredCommit | null,
  waiting: readonly StoredInput[],
): Record<string, unknown> {
  const start = waiting.find((input) => input.kind === "start") as StoredInput<StartBody> | undefined;
  const isOpening = start !== undefined || (tail !== null && tail.kind !== "idle");
  return {
    session_id: sessionId,
    state: isOpening ? "provisioning" : "stopped",
    turn_id: start?.body.turn_id ?? tail?.commit.turn_id ?? "",
    turn_count: 0,
    awaiting_approval: [],
    workspace: start?.body.workspace ?? tail?.commit.workspace ?? "default",
    turns: 0,
    entry_count: 0,
    leaf: null,
    updated_at: start?.at ?? tail?.commit.at ?? waiting.at(-1)?.at ?? 0,
    usage: {},
    cost_usd: 0,
  };
}
