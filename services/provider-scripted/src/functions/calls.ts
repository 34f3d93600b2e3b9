// provider::scripted::calls
import { scriptedCalls } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import type { CallLog } from "../adapters/call-log.ts";

export function makeCalls(log: CallLog) {
  return implement(scriptedCalls, async (_context, request) => ({ calls: await log.read(request.session_id) }));
}
