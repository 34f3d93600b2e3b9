// One trace per turn (I15): every owner's steps go on in the trace of the request that started the turn.
import type { TurnRecord } from "@flotilla/contracts";
import { extractContext, withIds } from "@flotilla/telemetry";
import { context } from "@opentelemetry/api";

/** Runs a step in the turn's trace, with the ids that every span below it carries. */
export function inTurnTrace<T>(turn: TurnRecord | null, step: () => Promise<T>): Promise<T> {
  if (turn === null) return step();
  const carrier = new Map<string, string>(turn.traceparent === null ? [] : [["traceparent", turn.traceparent]]);
  const ids = {
    sessionId: turn.session_id,
    messageId: turn.message_id,
    turnId: turn.turn_id,
    workspaceId: turn.workspace,
  };
  return context.with(withIds(extractContext(carrier), ids), step);
}
