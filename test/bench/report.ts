// The report as people read it: one table per question.
import type { FirstTokenResult } from "./first-token.ts";
import type { Mode } from "./fleet.ts";
import type { Machine } from "./machine.ts";
import type { TurnsResult } from "./turns.ts";
import type { GrowthResult, WritesResult } from "./writes.ts";

export interface ModeReport {
  readonly mode: Mode;
  readonly readyMs: number;
  readonly idle: {
    readonly processes: number;
    readonly residentMiB: number;
    readonly proportionalMiB: number;
    readonly byProcess: Record<string, number>;
    /** Of one core, while nothing is asked of it. */
    readonly cpuPercent: number;
  };
  readonly firstToken: readonly FirstTokenResult[];
  readonly turns: readonly TurnsResult[];
  readonly writes: WritesResult;
  readonly growth: readonly GrowthResult[];
}

export interface Report {
  readonly machine: Machine;
  readonly at: string;
  readonly modes: readonly ModeReport[];
  readonly loadAtEnd: readonly number[];
}

type Cell = string | number;

function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const line = (cells: readonly Cell[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

export function machineText(machine: Machine): string {
  return [
    `machine   ${machine.cpus} x ${machine.model}, ${machine.memoryGiB} GiB, Linux ${machine.kernel}`,
    `versions  Node ${machine.node}, nats-server ${machine.nats}, redis ${machine.redis}`,
    `load      ${machine.loadAtStart.join(" ")} at the start`,
  ].join("\n");
}

export function modeText(report: ModeReport): string {
  return [
    `## ${report.mode}`,
    "",
    `ready in ${(report.readyMs / 1000).toFixed(2)} s; idle: ${report.idle.processes} processes, RSS ${report.idle.residentMiB} MiB` +
      ` (shared pages once: ${report.idle.proportionalMiB} MiB), ${report.idle.cpuPercent} % of a core`,
    "",
    "First token, ms beyond the upstream's own 50 (second turn of a session, event stream open)",
    table(
      ["sessions", "direct p50", "direct p99", "ours p50", "ours p99", "added p50", "added p99", "whole turn p50"],
      report.firstToken.map((row) => [
        row.sessions,
        row.direct.p50,
        row.direct.p99,
        row.ours.p50,
        row.ours.p99,
        row.addedP50,
        row.addedP99,
        row.wholeTurnP50,
      ]),
    ),
    "",
    "Nine-step turn, ms from the request of a new session until agent_end on its event stream, and until the idle commit is stored",
    table(
      ["model", "sessions", "turns", "p50", "p99", "stored p50", "stored p99", "turns/s", "CPU ms/turn", "other CPUs"],
      report.turns.map((row) => [
        row.model,
        row.sessions,
        row.toEnd.n,
        row.toEnd.p50,
        row.toEnd.p99,
        row.toStored.p50,
        row.toStored.p99,
        row.turnsPerSecond,
        row.cpuMsPerTurn,
        row.otherCpus,
      ]),
    ),
    "",
    `Durable writes per nine-step turn: ${report.writes.messagesPerTurn} messages, ${report.writes.bytesPerTurn} bytes (${report.writes.bytesPerStep} a step)`,
    table(
      ["stream", "messages", "bytes kept"],
      Object.entries(report.writes.perTurn).map(([name, { messages, bytes }]) => [name, messages, bytes]),
    ),
    "",
    "The same turn as its session grows",
    table(
      ["steps before", "bytes/step", "of it journal", "largest commit", "turn ms"],
      report.growth.map((row) => [
        row.atStep,
        row.bytesPerStep,
        row.journalBytesPerStep,
        row.largestCommit,
        row.turnMs,
      ]),
    ),
    "",
  ].join("\n");
}
