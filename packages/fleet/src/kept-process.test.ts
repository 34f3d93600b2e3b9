// Behaviour of kept processes, with real ones.
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@flotilla/testkit";
import { afterEach, describe, expect, it } from "vitest";
import { type KeptProcess, keepProcess } from "./kept-process.ts";
import { runDirectory } from "./run-directory.ts";

const home = mkdtempSync(join(tmpdir(), "kept-"));
const runDir = runDirectory(home);
runDir.claim();
const started: KeptProcess[] = [];

async function keep(script: string, isRestarted: boolean, lines: string[] = []): Promise<KeptProcess> {
  const spec = { command: "sh", args: ["-c", script], env: { PATH: process.env.PATH }, output: join(home, "out.log") };
  const name = `p-${started.length}`;
  const kept = await keepProcess({ name, spec, runDir, isRestarted, report: (line) => lines.push(line) });
  started.push(kept);
  return kept;
}
const pidIn = (kept: KeptProcess): number => Number(readFileSync(join(home, "run", `${kept.name}.pid`), "utf8"));

afterEach(() => Promise.all(started.map((kept) => kept.stop(0))));

describe("a kept process", () => {
  it("is started again within a second after a SIGKILL, and its pid file names the new one", async () => {
    const kept = await keep("exec sleep 60", true);
    const first = kept.pid;
    expect(pidIn(kept)).toBe(first);
    const killedAt = performance.now();
    await kept.kill();
    await until(() => kept.isRunning() && pidIn(kept) !== first, { what: "it is back" });
    expect(performance.now() - killedAt).toBeLessThan(1_000);
    expect(pidIn(kept)).toBe(kept.pid);
  });

  it("stays down when it is not to be restarted, until it is asked for", async () => {
    const lines: string[] = [];
    const kept = await keep("exec sleep 60", false, lines);
    await kept.kill();
    await until(() => lines.length > 0, { what: "the end is reported" });
    expect(lines).toEqual([`${kept.name} ended with SIGKILL`]);
    expect(kept.lastExit()).toMatchObject({ signal: "SIGKILL" });
    await kept.respawn();
    expect(kept.isRunning()).toBe(true);
    expect(kept.lastExit()).toBeNull();
  });

  it("waits longer each time when it ends right after its start", async () => {
    const times: number[] = [];
    const spec = { command: "false", args: [], env: { PATH: process.env.PATH }, output: join(home, "out.log") };
    const report = (): void => void times.push(performance.now());
    const kept = await keepProcess({ name: "loop", spec, runDir, isRestarted: true, report });
    started.push(kept);
    await until(() => times.length >= 4, { what: "three restarts" });
    const [first = 0, second = 0, third = 0, fourth = 0] = times;
    expect(fourth - third).toBeGreaterThan(third - second);
    expect(third - second).toBeGreaterThan(second - first);
  });

  it("is killed when it does not act on SIGTERM within its grace", async () => {
    const kept = await keep('trap "" TERM; echo trapped; while :; do sleep 1; done', false);
    await until(() => readFileSync(join(home, "out.log"), "utf8").includes("trapped"), { what: "the trap is set" });
    await kept.stop(100);
    expect(kept.isRunning()).toBe(false);
    expect(kept.lastExit()).toMatchObject({ signal: "SIGKILL" });
  });

  it("stops also while it is frozen", async () => {
    const kept = await keep("exec sleep 60", false);
    kept.signal("SIGSTOP");
    await kept.stop(5_000);
    expect(kept.lastExit()).toMatchObject({ signal: "SIGTERM" });
  });

  it("says why when it cannot be started", async () => {
    const spec = { command: join(home, "no-such-program"), args: [], env: {}, output: join(home, "out.log") };
    const lines: string[] = [];
    await keepProcess({ name: "absent", spec, runDir, isRestarted: false, report: (line) => lines.push(line) });
    await until(() => lines.length > 0, { what: "the reason is reported" });
    expect(lines[0]).toContain("ENOENT");
  });
});
