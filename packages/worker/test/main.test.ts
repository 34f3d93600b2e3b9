// A worker process: what its signals do to running calls, and its exit codes.
import { type ChildProcess, fork } from "node:child_process";
import { text } from "node:stream/consumers";
import type { Bus } from "@flotilla/bus";
import { freePort, type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { codeOf, connectCaller, keyOf, work, workerName } from "./support.ts";

let nats: StartedNats;
const children: ChildProcess[] = [];
beforeAll(async () => {
  nats = await startNats();
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(() => nats.stop());

interface Started {
  readonly child: ChildProcess;
  readonly messages: string[];
  readonly exited: Promise<{ code: number | null; stderr: string }>;
}

function startMain(env: Record<string, string>): Started {
  const child = fork(new URL("./main-worker.ts", import.meta.url), {
    execPath: process.execPath,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  children.push(child);
  const messages: string[] = [];
  child.on("message", (message) => messages.push(String(message)));
  const stderr = child.stderr === null ? Promise.resolve("") : text(child.stderr);
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return {
    child,
    messages,
    exited: Promise.all([exited, stderr]).then(([code, output]) => ({ code, stderr: output })),
  };
}

async function startReady(bus: Bus, env: Record<string, string> = {}): Promise<Started> {
  const login = { NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile };
  const before = new Set(instancesOf(bus));
  const started = startMain({ ...login, ...env });
  await until(() => instancesOf(bus).some((instance) => !before.has(instance)), {
    what: "the process to be registered",
  });
  return started;
}

function instancesOf(bus: Bus): string[] {
  const entry = bus.registry.workers().find(({ manifest }) => manifest.worker === workerName);
  return entry?.instances.map(({ instance }) => instance) ?? [];
}

function untilTold(started: Started, message: string): Promise<unknown> {
  return until(() => started.messages.includes(message), { what: `the worker to say: ${message}` });
}

async function untilGone(bus: Bus): Promise<void> {
  await until(() => bus.registry.resolve(work.id)?.live === false, { what: "the worker to leave the registry" });
}

describe("SIGTERM", () => {
  it("leaves the registry, lets a running call finish and answer, and exits 0", async () => {
    await using bus = await connectCaller(nats);
    const started = await startReady(bus);
    const call = bus.call(work, { name: "finishes" }, { idempotencyKey: keyOf("finishes") });
    await untilTold(started, "started finishes");
    started.child.kill("SIGTERM");
    await untilGone(bus);
    await untilTold(started, "background stopped");
    expect(await codeOf(bus.call(work, {}, { timeoutMs: 300 }))).toBe("WORKER_UNAVAILABLE");
    started.child.send("finish");
    expect(await call).toEqual({ finished: true });
    expect((await started.exited).code).toBe(0);
  });

  it("aborts what still runs after the drain time and records it as SHUTTING_DOWN, also when the handler ignores it", async () => {
    await using bus = await connectCaller(nats);
    const started = await startReady(bus, { DRAIN_SECONDS: "0" });
    const obeys = codeOf(bus.call(work, { name: "obeys" }, { idempotencyKey: keyOf("obeys") }));
    const ignores = codeOf(bus.call(work, { name: "ignores" }, { idempotencyKey: keyOf("ignores") }));
    const plain = codeOf(bus.call(work, { name: "plain" }));
    for (const name of ["obeys", "ignores", "plain"]) await untilTold(started, `started ${name}`);
    started.child.kill("SIGTERM");
    expect(await Promise.all([obeys, ignores, plain])).toEqual(["SHUTTING_DOWN", "SHUTTING_DOWN", "SHUTTING_DOWN"]);
    expect((await started.exited).code).toBe(0);
    for (const name of ["obeys", "ignores"]) {
      expect((await bus.outcomes.read(keyOf(name), { fresh: true }))?.record).toMatchObject({
        status: "failed",
        error: { code: "SHUTTING_DOWN" },
      });
    }
  });

  it("exits 1 when the shutdown takes longer than its grace", async () => {
    await using bus = await connectCaller(nats);
    const started = await startReady(bus, { PROBE_STUCK: "true", SHUTDOWN_GRACE_MS: "300" });
    started.child.kill("SIGTERM");
    const { code, stderr } = await started.exited;
    expect(code).toBe(1);
    expect(stderr).toContain("took longer than its grace of 300 ms");
  });

  it("a second signal exits at once", async () => {
    await using bus = await connectCaller(nats);
    const started = await startReady(bus, { PROBE_STUCK: "true" });
    started.child.kill("SIGTERM");
    await untilTold(started, "background stopped");
    started.child.kill("SIGINT");
    expect((await started.exited).code).toBe(1);
  });
});

describe("a process that cannot run", () => {
  it("prints every configuration problem and exits 78 before anything opens", async () => {
    const { exited } = startMain({
      LOG_LEVEL: "loud",
      ADMIN_PORT: "x",
      PROBE_LIMIT: "hunter2",
      NATS_URL: "nats://127.0.0.1:1",
    });
    const { code, stderr } = await exited;
    expect(code).toBe(78);
    for (const name of ["LOG_LEVEL", "ADMIN_PORT", "PROBE_LIMIT"]) expect(stderr).toContain(`  ${name}: `);
    expect(stderr).not.toContain("hunter2");
  });

  it("says which login is missing and exits 78", async () => {
    const { exited } = startMain({ NATS_CREDENTIALS_FILE: "/nowhere/credentials.json" });
    const { code, stderr } = await exited;
    expect(code).toBe(78);
    expect(stderr).toContain("NATS_CREDENTIALS_FILE: the file cannot be read (ENOENT)");
  });

  it("waits for an absent NATS, says so, and then exits 1 naming the address", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const { exited } = startMain({ NATS_URL: `nats://u:hunter2@${address}`, NATS_CONNECT_TIMEOUT_MS: "800" });
    const { code, stderr } = await exited;
    expect(code).toBe(1);
    expect(stderr).toContain("waiting for NATS at");
    expect(stderr).toContain(`${address} is not reachable`);
    expect(stderr).not.toContain("hunter2");
  });

  it("stops at once on SIGTERM while it still waits for NATS", async () => {
    const started = startMain({ NATS_URL: `nats://127.0.0.1:${await freePort()}`, LOG_LEVEL: "warn" });
    await new Promise<void>((resolve) => started.child.stderr?.once("data", () => resolve()));
    started.child.kill("SIGTERM");
    expect((await started.exited).code).toBe(0);
  });

  it("treats an unhandled rejection as fatal", async () => {
    await using bus = await connectCaller(nats);
    const started = await startReady(bus);
    const call = codeOf(bus.call(work, { name: "defect" }, { timeoutMs: 500 }));
    const { code, stderr } = await started.exited;
    expect(code).toBe(1);
    expect(stderr).toContain("an error was handled nowhere");
    await call;
    expect(bus.registry.workers().some((entry) => entry.manifest.worker === workerName)).toBe(true);
  });
});
