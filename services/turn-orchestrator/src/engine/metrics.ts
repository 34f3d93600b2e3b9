// What the orchestrator counts; names and meanings are in the telemetry registry.
import type { Commit, CommitKind } from "@flotilla/contracts";
import { metricNames } from "@flotilla/telemetry";
import { Counter, Gauge, type Registry } from "prom-client";

export interface TurnMetrics {
  committed(kind: CommitKind, commit: Commit, isStored: boolean): void;
  takenOver(cause: "crash" | "handover"): void;
}

export function createTurnMetrics(registry: Registry, running: () => number): TurnMetrics {
  const counter = (name: "flotilla_commits_total" | "flotilla_takeovers_total" | "flotilla_turns_total"): Counter =>
    new Counter({
      name,
      help: metricNames[name].description,
      labelNames: [...metricNames[name].labels],
      registers: [registry],
    });
  const commits = counter("flotilla_commits_total");
  const takeovers = counter("flotilla_takeovers_total");
  const turns = counter("flotilla_turns_total");
  new Gauge({
    name: "flotilla_sessions_running",
    help: metricNames.flotilla_sessions_running.description,
    registers: [registry],
    collect() {
      this.set(running());
    },
  });
  return {
    committed(kind, commit, isStored) {
      commits.inc({ kind, outcome: isStored ? "stored" : "refused" });
      if (!isStored) return;
      for (const event of commit.events) if (event.type === "agent_end") turns.inc({ reason: event.reason });
    },
    takenOver: (cause) => takeovers.inc({ cause }),
  };
}
