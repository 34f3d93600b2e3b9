// The session worker's series.
import { metricNames } from "@flotilla/telemetry";
import { Counter, type Registry } from "prom-client";
import type { ProjectorDeps } from "./adapters/projector.ts";

export function projectionMetrics(registry: Registry): { onProjected: NonNullable<ProjectorDeps["onProjected"]> } {
  const name = "flotilla_projected_commits_total";
  const commits = new Counter({
    name,
    help: metricNames[name].description,
    labelNames: ["outcome"],
    registers: [registry],
  });
  return { onProjected: (outcome) => commits.inc({ outcome }) };
}
