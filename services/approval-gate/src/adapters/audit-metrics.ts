// How many decisions have no audit record.
import { metricNames } from "@flotilla/telemetry";
import { Counter, type Registry } from "prom-client";

export function createAuditFailures(registry: Registry): () => void {
  const failures = new Counter({
    name: "flotilla_approval_audit_failures_total",
    help: metricNames.flotilla_approval_audit_failures_total.description,
    registers: [registry],
  });
  return () => failures.inc();
}
