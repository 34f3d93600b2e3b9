// Behaviour of the run directory (wire.md 6).
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FleetError } from "./fleet-error.ts";
import { runDirectory } from "./run-directory.ts";

const newHome = (): string => mkdtempSync(join(tmpdir(), "home-"));

describe("claim", () => {
  it("makes this process the fleet of the home", () => {
    const home = newHome();
    runDirectory(home).claim();
    expect(readFileSync(join(home, "run", "flotilla.pid"), "utf8")).toBe(`${process.pid}\n`);
    expect(readdirSync(join(home, "run"))).toEqual(["flotilla.pid"]);
  });

  it("refuses while the fleet of the home lives, and names its pid", () => {
    const home = newHome();
    runDirectory(home).claim();
    expect(() => runDirectory(home).claim()).toThrow(FleetError);
    expect(() => runDirectory(home).claim()).toThrow(new RegExp(`already running in ${home} \\(pid ${process.pid}\\)`));
  });

  it("replaces the claim of a process that is gone", () => {
    const home = newHome();
    mkdirSync(join(home, "run"));
    const file = join(home, "run", "flotilla.pid");
    writeFileSync(file, "1\n");
    // Older than any process: its number has been given away since.
    utimesSync(file, 1, 1);
    runDirectory(home).claim();
    expect(readFileSync(file, "utf8")).toBe(`${process.pid}\n`);
  });
});

describe("pid files and addresses", () => {
  it("hold one decimal number and one URL, readable by their owner only", () => {
    const home = newHome();
    const runDir = runDirectory(home);
    runDir.claim();
    runDir.writePid("policy-0", 4711);
    runDir.writeAddress("nats", "nats://operator:secret@127.0.0.1:4222");
    expect(readFileSync(join(home, "run", "policy-0.pid"), "utf8")).toBe("4711\n");
    expect(statSync(join(home, "run", "nats.url")).mode & 0o777).toBe(0o600);
    expect(runDir.readAddress("nats")).toBe("nats://operator:secret@127.0.0.1:4222");
    expect(runDir.readAddress("redis")).toBeNull();
    expect(runDir.pidNames().sort()).toEqual(["flotilla", "policy-0"]);
  });

  it("are gone after clear", () => {
    const home = newHome();
    const runDir = runDirectory(home);
    runDir.claim();
    runDir.writeAddress("http", "http://127.0.0.1:1");
    runDir.clear();
    expect(existsSync(join(home, "run"))).toBe(true);
    expect(readdirSync(join(home, "run"))).toEqual([]);
  });
});
