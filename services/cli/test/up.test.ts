// Behaviour of up and down, as the real command with real processes (wire.md 6).
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts, processAgeMs } from "@flotilla/fleet";
import { until } from "@flotilla/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningFlotilla, startFlotilla } from "./run-flotilla.ts";

let home: string;
let env: Record<string, string>;
const running: RunningFlotilla[] = [];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "flotilla-up-"));
  env = { FLOTILLA_HOME: home, FLOTILLA_PORT: String(await freePorts(2)) };
});
afterEach(async () => {
  await startFlotilla(["down"], env).exited;
  for (const { child } of running.splice(0)) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

function up(...args: string[]): RunningFlotilla {
  const started = startFlotilla(["up", ...args], env);
  running.push(started);
  return started;
}
const pid = (name: string): number => Number(readFileSync(join(home, "run", `${name}.pid`), "utf8"));
const isReady = async (port = Number(env.FLOTILLA_PORT)): Promise<boolean> =>
  (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
const ready = (started: RunningFlotilla): Promise<unknown> =>
  until(() => started.output().includes("ready in"), { what: `ready, so far: ${started.output()}`, timeoutMs: 25_000 });

const isAlive = (processId: number): boolean => processAgeMs(processId) !== null;

describe("flotilla up", () => {
  it("runs everything in one process and NATS and Redis beside it; SIGINT stops all it started", async () => {
    const fleet = up();
    await ready(fleet);
    expect(await isReady()).toBe(true);
    expect(readdirSync(join(home, "run")).sort()).toEqual(
      ["composite-0.pid", "flotilla.pid", "http.url", "nats.pid", "nats.url", "redis.pid", "redis.url"].sort(),
    );
    const pids = [pid("composite-0"), pid("nats"), pid("redis")];
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    expect(fleet.output()).toContain(`http://127.0.0.1:${env.FLOTILLA_PORT}/`);
    expect(fleet.output()).toContain("scripted/demo");
    fleet.child.kill("SIGINT");
    expect(await fleet.exited).toBe(0);
    expect(pids.map(isAlive)).toEqual([false, false, false]);
    expect(readdirSync(join(home, "run"))).toEqual([]);
  });

  it("refuses a second fleet in the same home, and leaves the first alone", async () => {
    await ready(up());
    const second = up();
    expect(await second.exited).toBe(1);
    expect(second.output()).toMatch(/a fleet is already running in .* \(pid \d+\).*flotilla down/);
    expect(await isReady()).toBe(true);
  });

  it("starts again over what a killed one left behind, and keeps the sessions", async () => {
    const first = up();
    await ready(first);
    const body = JSON.stringify({ provider: "scripted", model: "play", text: "say hello" });
    const url = `http://127.0.0.1:${env.FLOTILLA_PORT}/v1/sessions/kept`;
    await fetch(`${url}/turns`, { method: "POST", body, headers: { "content-type": "application/json" } });
    const orphan = pid("nats");
    first.child.kill("SIGKILL");
    await first.exited;
    expect(isAlive(orphan)).toBe(true);
    await ready(up());
    expect(isAlive(orphan)).toBe(false);
    await until(async () => ((await (await fetch(url)).json()) as { state: string }).state === "stopped", {
      what: "the turn has ended",
    });
  });

  it("goes to the background with --detach, and down stops it", async () => {
    const fleet = up("--detach", "--json");
    expect(await fleet.exited).toBe(0);
    const started = JSON.parse(fleet.output().trim().split("\n").at(-1) ?? "") as { urls: string[] };
    expect(started.urls).toEqual([`http://127.0.0.1:${env.FLOTILLA_PORT}`]);
    const pids = [pid("flotilla"), pid("nats"), pid("redis")];
    const down = startFlotilla(["down"], env);
    expect(await down.exited).toBe(0);
    expect(down.output()).toContain("stopped composite-0, nats, redis");
    expect(pids.map(isAlive)).toEqual([false, false, false]);
    const again = startFlotilla(["down"], env);
    expect(await again.exited).toBe(0);
    expect(again.output()).toContain("nothing runs in");
  });

  it("names the port that is in use and the variable that moves it", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(Number(env.FLOTILLA_PORT), "127.0.0.1", resolve));
    const fleet = up();
    expect(await fleet.exited).toBe(1);
    expect(fleet.output()).toContain(`port ${env.FLOTILLA_PORT} is in use`);
    expect(fleet.output()).toContain("FLOTILLA_PORT");
    expect(readdirSync(join(home, "run"))).toEqual([]);
    other.close();
  });

  it("waits for a NATS that is not there, says so, and gives up naming its address but not its password", async () => {
    env.NATS_URL = "nats://user:hunter2@127.0.0.1:1";
    env.NATS_CONNECT_TIMEOUT_MS = "600";
    const fleet = up();
    expect(await fleet.exited).toBe(1);
    expect(fleet.output()).toContain("waiting for NATS at 127.0.0.1:1");
    expect(fleet.output()).toContain("NATS at 127.0.0.1:1 is not reachable");
    expect(fleet.output()).not.toContain("hunter2");
  });

  it("does the same for Redis", async () => {
    env.REDIS_URL = "redis://:hunter2@127.0.0.1:1";
    env.NATS_CONNECT_TIMEOUT_MS = "600";
    const fleet = up();
    expect(await fleet.exited).toBe(1);
    expect(fleet.output()).toContain("Redis at 127.0.0.1:1 is not reachable");
    expect(fleet.output()).not.toContain("hunter2");
    expect(existsSync(join(home, "run", "nats.pid"))).toBe(false);
  });

  it("stops at once when a signal comes while it still waits", async () => {
    env.NATS_URL = "nats://127.0.0.1:1";
    const fleet = up();
    await until(() => fleet.output().includes("waiting for NATS"), { what: "it waits" });
    fleet.child.kill("SIGTERM");
    expect(await fleet.exited).toBe(0);
    expect(readdirSync(join(home, "run"))).toEqual([]);
  });

  it("exits with 78 and every problem when the configuration is not valid", async () => {
    env.LOG_LEVEL = "loud";
    env.DRAIN_SECONDS = "soon";
    const fleet = up();
    expect(await fleet.exited).toBe(78);
    expect(fleet.output()).toContain("LOG_LEVEL");
    expect(fleet.output()).toContain("DRAIN_SECONDS");
  });
});

describe("flotilla up --split", () => {
  it("gives every replica a process, a pid file and, for a harness, a port; a killed worker stays away", async () => {
    const fleet = up("--split", "--replicas", "harness=2,policy=2");
    await ready(fleet);
    expect(await isReady(Number(env.FLOTILLA_PORT) + 1)).toBe(true);
    const victim = pid("policy-1");
    expect(new Set([victim, pid("policy-0"), pid("harness-0"), pid("harness-1"), pid("session-0")]).size).toBe(5);
    process.kill(victim, "SIGKILL");
    await until(() => fleet.output().includes("policy-1 ended with SIGKILL; not started again"), {
      what: "it is told",
    });
    expect(pid("policy-1")).toBe(victim);
    expect(isAlive(victim)).toBe(false);
    const redis = pid("redis");
    process.kill(redis, "SIGKILL");
    await until(() => pid("redis") !== redis && isAlive(pid("redis")), { what: "Redis is back", timeoutMs: 1_000 });
    fleet.child.kill("SIGTERM");
    expect(await fleet.exited).toBe(0);
    expect(readdirSync(join(home, "run"))).toEqual([]);
  });

  it("starts a killed worker again with --supervise, and NATS on its port within a second", async () => {
    const fleet = up("--split", "--supervise");
    await ready(fleet);
    const [worker, nats] = [pid("policy-0"), pid("nats")];
    const address = readFileSync(join(home, "run", "nats.url"), "utf8");
    process.kill(worker, "SIGKILL");
    process.kill(nats, "SIGKILL");
    await until(() => pid("nats") !== nats && isAlive(pid("nats")), { what: "NATS is back", timeoutMs: 1_000 });
    expect(readFileSync(join(home, "run", "nats.url"), "utf8")).toBe(address);
    await until(() => pid("policy-0") !== worker && isAlive(pid("policy-0")), { what: "policy is back" });
    await until(() => isReady(), { what: "the fleet is ready again", timeoutMs: 20_000 });
  });

  it("refuses what only a split fleet can do, before anything starts", async () => {
    const fleet = up("--replicas", "harness=2");
    expect(await fleet.exited).toBe(1);
    expect(fleet.output()).toContain("need --split");
    expect(existsSync(join(home, "run"))).toBe(false);
  });
});
