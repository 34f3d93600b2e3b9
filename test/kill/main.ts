// `npm run test:kill -- --kills 500 --seed 1`: the long kill run, with a report; `--nats 5` kills NATS too, every fifth time.
import { writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { startProcessFleet } from "@flotilla/testkit";
import { type KillReport, killRun } from "./kill-run.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    sessions: { type: "string", default: "30" },
    gap: { type: "string", default: "2500" },
    nats: { type: "string" },
    minutes: { type: "string", default: "60" },
    out: { type: "string" },
  },
});
const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const fleet = await startProcessFleet({ replicas: { "turn-orchestrator": 2, harness: 2 } });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
let report: KillReport;
try {
  report = await killRun({
    fleet,
    kills: Number(values.kills),
    seed: Number(values.seed),
    sessions: Number(values.sessions),
    gapMs: Number(values.gap),
    limitMs: Number(values.minutes) * 60_000,
    log: print,
    ...(values.nats === undefined ? {} : { natsEvery: Number(values.nats) }),
  });
} finally {
  await fleet.stop();
}
const machine = `${cpus().length} x ${cpus()[0]?.model ?? "cpu"}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
print(JSON.stringify({ machine, seed: Number(values.seed), ...report }, null, 2));
if (values.out !== undefined)
  writeFileSync(values.out, JSON.stringify({ machine, seed: Number(values.seed), ...report }, null, 2));
const isClean = report.wrong.length === 0 && report.orphans.length === 0 && report.takeoverMaxMs <= 5_000;
print(`${report.sessions - report.wrong.length} passed, ${report.wrong.length} failed`);
process.exitCode = isClean ? 0 : 1;
