// provider::scripted::calls
import { scriptedCalls } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import type { CallLog } from "../adapters/call-log.ts";

export function makeCalls(log: CallLog) {
  return implement(scriptedCalls, async (_context, request) => {
    const records = await log.read(request.session_id);
    return {
      calls: records.map(({ message_id, block, attempt, idempotency_key, at }) => ({
        message_id,
        block,
        attempt,
        idempotency_key,
        at,
      })),
    };
  });
}
