// How often a permissions file was taken or rejected, and whether the newest is in force.
import { metricNames } from "@flotilla/telemetry";
import { Counter, Gauge, type Registry } from "prom-client";

export function createReloadMetrics(registry: Registry): (outcome: "loaded" | "rejected") => void {
  const reloads = new Counter({
    name: "flotilla_policy_reloads_total",
    help: metricNames.flotilla_policy_reloads_total.description,
    labelNames: metricNames.flotilla_policy_reloads_total.labels,
    registers: [registry],
  });
  const stale = new Gauge({
    name: "flotilla_policy_rules_stale",
    help: metricNames.flotilla_policy_rules_stale.description,
    registers: [registry],
  });
  return (outcome) => {
    reloads.inc({ outcome });
    stale.set(outcome === "rejected" ? 1 : 0);
  };
}
