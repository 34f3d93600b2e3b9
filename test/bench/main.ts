// `npm run bench:turn [-- --quick] [-- --mode composite] [-- --out file.json]`: what a turn costs, with the machine it was measured on.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { measureFirstToken } from "./first-token.ts";
import { type BenchFleet, type Mode, startBenchFleet } from "./fleet.ts";
import { describeMachine, load } from "./machine.ts";
import { type RunningUpstream, startUpstream } from "./model.ts";
import { runPeers } from "./peers.ts";
import { type ModeReport, machineText, modeText, type Report } from "./report.ts";
import { rounded, sum } from "./statistics.ts";
import { measureTurns, medianOf, type TurnsOptions } from "./turns.ts";
import { measureGrowth, measureWrites } from "./writes.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    mode: { type: "string" },
    out: { type: "string" },
    peers: { type: "string" },
    /** Folder for CPU profiles of the process of `flotilla up`. */
    profile: { type: "string" },
  },
});
const isQuick = values.quick;
const plan = isQuick
  ? { idleMs: 1_000, single: 10, many: 1, blockMs: 800, rounds: 1, writes: 5, ages: [10, 100] }
  : { idleMs: 3_000, single: 30, many: 2, blockMs: 1_500, rounds: 2, writes: 10, ages: [10, 100, 1_000] };
const concurrency = [1, 8, 32];

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function measure(
  mode: Mode,
  upstream: RunningUpstream,
  onStart: (fleet: BenchFleet) => void,
): Promise<ModeReport> {
  const nodeArgs = values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`];
  const fleet = await startBenchFleet({ mode, upstreamUrl: upstream.url, nodeArgs });
  try {
    onStart(fleet);
    const idle = await measureIdle(fleet);
    await warmUp(fleet);
    const turns = [];
    for (const model of ["scripted", "upstream"] as const) {
      for (const sessions of concurrency) turns.push(await rounds(fleet, { model, sessions, forMs: plan.blockMs }));
    }
    const firstToken = [];
    for (const [sessions, rounds] of [
      [1, plan.single],
      [50, plan.many],
    ] as const) {
      firstToken.push(await measureFirstToken(fleet, { upstreamUrl: upstream.url, sessions, rounds, periodMs: 4_000 }));
    }
    const writes = await measureWrites(fleet, plan.writes);
    const growth = await measureGrowth(fleet, plan.ages);
    return { mode, readyMs: fleet.readyMs, idle, firstToken, turns, writes, growth };
  } finally {
    await fleet.stop();
  }
}

async function rounds(fleet: BenchFleet, options: TurnsOptions) {
  const results = [];
  for (let round = 0; round < plan.rounds; round += 1) results.push(await measureTurns(fleet, options));
  return medianOf(results);
}

/** The code of every worker on the path is compiled before anything is timed. */
async function warmUp(fleet: BenchFleet): Promise<void> {
  for (const model of ["scripted", "upstream"] as const)
    await measureTurns(fleet, { model, sessions: 4, forMs: isQuick ? 1_000 : 2_500 });
}

async function measureIdle(fleet: BenchFleet): Promise<ModeReport["idle"]> {
  const before = { cpu: sum(Object.values(fleet.cpuMs())), at: performance.now() };
  await new Promise((resolve) => setTimeout(resolve, plan.idleMs));
  const cpuMs = sum(Object.values(fleet.cpuMs())) - before.cpu;
  return { ...fleet.memory(), cpuPercent: rounded((cpuMs / (performance.now() - before.at)) * 100) };
}

function modesOf(name: string | undefined): Mode[] {
  if (name === undefined) return ["composite", "split"];
  if (name === "composite" || name === "split") return [name];
  throw new RangeError("--mode is composite or split");
}

const upstream = await startUpstream();
try {
  const reports: ModeReport[] = [];
  let machine: Report["machine"] | undefined;
  for (const mode of modesOf(values.mode)) {
    const report = await measure(mode, upstream, (fleet) => {
      if (machine !== undefined) return;
      machine = describeMachine(fleet.nc.info?.version ?? "unknown");
      print(`${machineText(machine)}\n`);
    });
    reports.push(report);
    print(modeText(report));
  }
  const peers = values.peers === undefined ? undefined : await runPeers(values.peers, print);
  print(`load      ${load().join(" ")} at the end`);
  const whole = { machine, at: new Date().toISOString(), modes: reports, loadAtEnd: load(), peers };
  if (values.out !== undefined) writeFileSync(values.out, `${JSON.stringify(whole, null, 2)}\n`);
} finally {
  upstream.stop();
}
