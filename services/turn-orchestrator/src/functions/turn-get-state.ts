// turn::get_state: the newest turn's state from the journal, for a reload of a UI.
import { stateViewOf, turnGetState } from "@flotilla/contracts";
import { type Implementation, implement } from "@flotilla/worker";
import type { EngineDeps } from "../engine/types.ts";

export function makeTurnGetState(deps: EngineDeps): Implementation {
  return implement(turnGetState, async (_context, request) => {
    const tail = await deps.bus.journal.tail(request.session_id, { fresh: true });
    const state = tail?.commit.state ?? null;
    return state === null ? null : stateViewOf(state);
  });
}
