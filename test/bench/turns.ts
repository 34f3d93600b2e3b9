// Nine-step turns in a closed loop: how long one takes, how many a second, and what they cost in CPU time.
import { subjects } from "@flotilla/contracts";
import type { BenchFleet } from "./fleet.ts";
import { type ModelName, toolCalls, turnBody } from "./model.ts";
import { machineBusyMs } from "./processes.ts";
import { nineStepTurn } from "./session.ts";
import { percentile, rounded, type Spread, spreadOf, sum } from "./statistics.ts";

export interface TurnsResult {
  readonly model: ModelName;
  readonly sessions: number;
  /** From the request until `agent_end` on the event stream. */
  readonly toEnd: Spread;
  /** From the request until the notice of the stored idle commit. */
  readonly toStored: Spread;
  readonly turnsPerSecond: number;
  readonly cpuMsPerTurn: number;
  readonly cpuMsPerTurnByProcess: Record<string, number>;
  /** CPUs taken by anything but the fleet meanwhile, this client included; 1 = one core. */
  readonly otherCpus: number;
}

export interface TurnsOptions {
  readonly model: ModelName;
  readonly sessions: number;
  readonly forMs: number;
}

export async function measureTurns(fleet: BenchFleet, options: TurnsOptions): Promise<TurnsResult> {
  const body = turnBody(options.model, { tools: toolCalls });
  const stored = new Map<string, number>();
  const notices = fleet.nc.subscribe(subjects.liveCommits, {
    callback: (_, { subject }) => {
      const [, , , sessionId, , kind] = subject.split(".");
      if (sessionId !== undefined && kind === "idle") stored.set(sessionId, performance.now());
    },
  });
  await fleet.nc.flush();
  const before = { cpu: fleet.cpuMs(), busy: machineBusyMs(), at: performance.now() };
  const turns: Awaited<ReturnType<typeof nineStepTurn>>[] = [];
  const loop = async (): Promise<void> => {
    while (performance.now() < before.at + options.forMs) turns.push(await nineStepTurn(fleet.url, body));
  };
  await Promise.all(Array.from({ length: options.sessions }, loop));
  const wallMs = performance.now() - before.at;
  const cpu = differences(before.cpu, fleet.cpuMs());
  const busyMs = machineBusyMs() - before.busy;
  await fleet.nc.flush();
  notices.unsubscribe();
  const cpuMs = sum(Object.values(cpu));
  const storedMs = turns.map(({ sessionId, startedAt }) => (stored.get(sessionId) ?? Number.NaN) - startedAt);
  return {
    model: options.model,
    sessions: options.sessions,
    toEnd: spreadOf(turns.map(({ startedAt, endedAt }) => endedAt - startedAt)),
    toStored: spreadOf(storedMs.filter((ms) => !Number.isNaN(ms))),
    turnsPerSecond: rounded((turns.length / wallMs) * 1_000),
    cpuMsPerTurn: rounded(cpuMs / turns.length),
    cpuMsPerTurnByProcess: Object.fromEntries(
      Object.entries(cpu).map(([name, ms]) => [name, rounded(ms / turns.length)]),
    ),
    otherCpus: rounded((busyMs - cpuMs) / wallMs),
  };
}

function differences(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

/** Rounds of the same cell as one: latencies of all turns would hide a slow round, so each figure is the median of its rounds. */
export function medianOf(rounds: readonly TurnsResult[]): TurnsResult {
  const [first] = rounds;
  if (first === undefined) throw new RangeError("no rounds");
  const middle = (pick: (round: TurnsResult) => number): number => percentile(rounds.map(pick), 50);
  const spread = (pick: (round: TurnsResult) => Spread): Spread => ({
    n: sum(rounds.map((round) => pick(round).n)),
    p50: middle((round) => pick(round).p50),
    p99: Math.max(...rounds.map((round) => pick(round).p99)),
  });
  return {
    ...first,
    toEnd: spread((round) => round.toEnd),
    toStored: spread((round) => round.toStored),
    turnsPerSecond: middle((round) => round.turnsPerSecond),
    cpuMsPerTurn: middle((round) => round.cpuMsPerTurn),
    otherCpus: middle((round) => round.otherCpus),
  };
}
