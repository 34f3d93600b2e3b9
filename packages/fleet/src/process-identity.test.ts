// Behaviour of pid files: whose process is it?
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { elapsedMs, livePidOf, processAgeMs } from "./process-identity.ts";

function pidFile(text: string): string {
  const file = join(mkdtempSync(join(tmpdir(), "pid-")), "x.pid");
  writeFileSync(file, text);
  return file;
}

describe("livePidOf", () => {
  it("finds the process that wrote the file", () => {
    expect(livePidOf(pidFile(`${process.pid}\n`))).toBe(process.pid);
  });

  it("finds nobody when the process is gone", async () => {
    const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
    const { pid } = child;
    await once(child, "exit");
    expect(livePidOf(pidFile(`${pid}`))).toBeNull();
  });

  it("finds nobody when the number went to a process that is younger than the file", () => {
    const file = pidFile(`${process.pid}`);
    const beforeWeLived = Date.now() / 1000 - process.uptime() - 3600;
    utimesSync(file, beforeWeLived, beforeWeLived);
    expect(livePidOf(file)).toBeNull();
  });

  it.each(["", "abc", "-1", "0", "12 13"])("finds nobody in a file that holds %j", (text) => {
    expect(livePidOf(pidFile(text))).toBeNull();
  });

  it("finds nobody without a file", () => {
    expect(livePidOf(join(tmpdir(), "no-such-file.pid"))).toBeNull();
  });
});

describe("processAgeMs", () => {
  it("agrees with the process's own clock", () => {
    expect(processAgeMs(process.pid)).toBeGreaterThan(process.uptime() * 1000 - 1_500);
    expect(processAgeMs(process.pid)).toBeLessThan(process.uptime() * 1000 + 1_500);
  });

  it("takes a process that ended but was not reaped for gone", async () => {
    // The shell's child ends at once; the shell has become a sleep that never reaps it.
    const shell = spawn("sh", ["-c", "true & echo $!; exec sleep 30"], { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = (await once(shell.stdout, "data")) as [Buffer];
    const zombie = Number(line.toString());
    await expect.poll(() => processAgeMs(zombie)).toBeNull();
    shell.kill("SIGKILL");
  });
});

describe("elapsedMs", () => {
  it.each([
    ["05:07", 307_000],
    ["01:00:00", 3_600_000],
    ["2-03:04:05", 183_845_000],
    ["  00:01\n", 1_000],
    ["nothing", null],
  ])("reads %j of ps", (text, ms) => {
    expect(elapsedMs(text)).toBe(ms);
  });
});
