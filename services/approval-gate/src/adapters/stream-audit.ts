// Audit records of decisions, appended to the AUDIT stream.
import type { Bus } from "@flotilla/bus";
import { subjects } from "@flotilla/contracts";
import type { Audit } from "../ports.ts";

export interface StreamAuditDeps {
  readonly bus: Pick<Bus, "js" | "worker" | "logger">;
  readonly onFailure: () => void;
}

const timeoutMs = 2_000;

export function createStreamAudit({ bus, onFailure }: StreamAuditDeps): Audit {
  return async (record) => {
    const { session_id, function_call_id } = record;
    try {
      await bus.js.publish(subjects.audit(bus.worker), JSON.stringify(record), {
        msgID: `approval.${session_id}.${function_call_id}`,
        timeout: timeoutMs,
      });
    } catch (error) {
      // The decision is durable in the journal already (I1); refusing it now would tell the human an untruth.
      onFailure();
      bus.logger.error("an audit record could not be stored; the decision stands in the journal", {
        session_id,
        function_call_id,
        error: String(error),
      });
    }
  };
}
