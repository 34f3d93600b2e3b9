// harness::trigger: starts a turn through the front door and answers like an HTTP response.
import { harnessTrigger, randomId } from "@flotilla/contracts";
import { type Implementation, implement } from "@flotilla/worker";
import type { Doors } from "../ports.ts";
import { triggerStart } from "./trigger-start.ts";

export function makeTrigger(doors: Doors): Implementation {
  return implement(harnessTrigger, async (context, request) => {
    const named = request.payload.session_id;
    const sessionId = request.session_id ?? named ?? randomId();
    const workspace = request.payload.workspace ?? context.workspace;
    const body = await triggerStart(doors, {
      session_id: sessionId,
      message_id: request.message_id,
      payload: { ...request.payload, workspace },
    });
    return { status_code: 200, headers: { "content-type": "application/json" }, body };
  });
}
