// The kill slice: thirty sessions at once, and one SIGKILL of an orchestrator at every edge of a turn's steps.
import { type ProcessFleet, startProcessFleet } from "@flotilla/testkit";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type KillReport, killRun } from "./kill-run.ts";
import { edges } from "./script.ts";

let fleet: ProcessFleet;
beforeAll(async () => {
  fleet = await startProcessFleet({ replicas: { "turn-orchestrator": 2, harness: 2 } });
}, 60_000);
afterAll(() => fleet?.stop());

it("a SIGKILL of the owner at every step edge repeats nothing, loses nothing and is taken over within 5 s (I1, I2, I4, I5, I10; field: kagent-dev/kagent#2600, bytedance/deer-flow#1087)", async () => {
  const report: KillReport = await killRun({
    fleet,
    kills: edges.length,
    seed: 7,
    sessions: 30,
    gapMs: 2_500,
    limitMs: 80_000,
    log: () => {},
  });
  expect(report.wrong).toEqual([]);
  expect(report.killsByEdge).toEqual(Object.fromEntries(edges.map((edge) => [edge, 1])));
  expect(report.orphans).toEqual([]);
  expect(report.takeovers).toBeGreaterThan(edges.length);
  expect(report.takeoverMaxMs).toBeLessThan(5_000);
}, 120_000);
