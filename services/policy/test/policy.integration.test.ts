// The whole policy worker on a real bus, with its own login: verdicts, hot reload, bad files.
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bus, connectBus } from "@flotilla/bus";
import { policyCheckPermissions, randomId } from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { definition } from "../src/worker.ts";

let nats: StartedNats;
let bus: Bus;
let home: string;
let running: WorkersHandle | undefined;

beforeAll(async () => {
  nats = await startNats();
  const logger = createLogger({ level: "error", name: "test" });
  bus = await connectBus({ url: nats.url, worker: "operator", instance: randomId(), logger });
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "flotilla-policy-"));
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  await rm(home, { recursive: true, force: true });
});

async function start(env: Record<string, string> = {}): Promise<WorkersHandle> {
  running = runWorkers({
    definitions: [definition],
    env: {
      NATS_URL: nats.address,
      NATS_CREDENTIALS_FILE: nats.credentialsFile,
      FLOTILLA_HOME: home,
      ADMIN_PORT: "0",
      LOG_LEVEL: "silent",
      ...env,
    },
  });
  await running.ready();
  return running;
}

const check = (functionId: string, args: Record<string, unknown> = {}) =>
  bus.call(policyCheckPermissions, { function_id: functionId, args }, { timeoutMs: 5_000 });
const write = (text: string): Promise<void> => writeFile(join(home, "permissions.yaml"), text);
const becomes = (functionId: string, decision: string): Promise<unknown> =>
  until(async () => (await check(functionId)).decision === decision, {
    timeoutMs: 2_000,
    what: `${functionId} becomes ${decision}`,
  });

async function metric(handle: WorkersHandle, name: string): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${handle.adminPort}/metrics`);
  return (await response.text()).split("\n").filter((line) => line.startsWith(name));
}

describe("verdicts", () => {
  it("gives those of the shipped file when there is no other", async () => {
    await start();
    expect(await check("demo::echo")).toEqual({ decision: "allow", rule_id: "demo::*" });
    expect(await check("demo::refund")).toEqual({ decision: "needs_approval", reason: "moves money" });
    expect(await check("run::start")).toMatchObject({ decision: "deny", rule_id: "kernel:run::*" });
  });

  it("carries the constraint that matched over the wire", async () => {
    await write("rules: [{function: s::x, action: deny, rule_id: no-rm, args: {cmd: {matches: '^rm'}}}]");
    await start();
    expect(await check("s::x", { cmd: "rm -r" })).toEqual({
      decision: "deny",
      rule_id: "no-rm",
      rule_action: "deny",
      matched_constraint: { field: "cmd", operator: "matches", value: "^rm" },
    });
  });

  it("refuses arguments that are not an object, so that the caller fails closed (I8)", async () => {
    await start();
    for (const args of [[1], "text", 5, null]) {
      const answer = bus.callId("policy::check_permissions", { function_id: "demo::echo", args });
      await expect(answer).rejects.toMatchObject({ code: "INVALID_INPUT", field: "args" });
    }
  });
});

describe("hot reload", () => {
  it("takes a home file that appears, changes, is replaced and goes away, each within 2 s", async () => {
    await start();
    await write("rules: ['!demo::echo']");
    await becomes("demo::echo", "deny");
    await write("rules: [{function: demo::echo, action: needs_approval}]");
    await becomes("demo::echo", "needs_approval");
    await writeFile(join(home, "next.yaml"), "rules: [demo::echo]");
    await rename(join(home, "next.yaml"), join(home, "permissions.yaml"));
    await becomes("demo::echo", "allow");
    expect((await check("demo::lookup")).decision).toBe("needs_approval");
    await rm(join(home, "permissions.yaml"));
    await becomes("demo::lookup", "allow");
  });

  it("keeps the last good rules over a file that does not parse, says so, and recovers", async () => {
    await write("rules: ['!demo::echo']");
    const handle = await start();
    await write("rules: ['demo::*', {function: demo::echo, action: maybe}]");
    const degraded = await until(async () => (await handle.readiness()).workers[0]?.degraded?.[0], {
      timeoutMs: 2_000,
      what: "the broken file shows on readiness",
    });
    expect(degraded).toContain("the last good rules are in force");
    expect(degraded).toContain("rule 1: action must be one of allow, deny, needs_approval");
    expect((await check("demo::echo")).decision).toBe("deny");
    expect((await fetch(`http://127.0.0.1:${handle.adminPort}/readyz`)).status).toBe(200);
    expect(await metric(handle, "flotilla_policy_")).toEqual([
      'flotilla_policy_reloads_total{outcome="loaded"} 1',
      'flotilla_policy_reloads_total{outcome="rejected"} 1',
      "flotilla_policy_rules_stale 1",
    ]);
    await write("rules: [demo::echo]");
    await becomes("demo::echo", "allow");
    expect((await handle.readiness()).status).toBe("ready");
    expect(await metric(handle, "flotilla_policy_rules_stale")).toEqual(["flotilla_policy_rules_stale 0"]);
  });
});

describe("a bad file at the start", () => {
  it("denies everything with a clear reason, stays up, and follows the repair (I8)", async () => {
    await write("rules: [demo::echo, 5]");
    const handle = await start();
    expect(await check("demo::echo")).toMatchObject({
      decision: "deny",
      rule_id: "permissions-file",
      reason: expect.stringContaining("everything is denied"),
    });
    const readiness = await handle.readiness();
    expect(readiness.status).toBe("degraded");
    expect(readiness.workers[0]?.degraded?.[0]).toMatch(/everything is denied: .*permissions\.yaml: rule 1: must be/);
    await write("rules: [demo::echo]");
    await becomes("demo::echo", "allow");
  });

  it("takes no other file in place of a missing FLOTILLA_PERMISSIONS, and follows it when it comes", async () => {
    await write("rules: ['*']");
    const named = join(home, "named.yaml");
    const handle = await start({ FLOTILLA_PERMISSIONS: named });
    expect((await check("demo::echo")).decision).toBe("deny");
    expect((await handle.readiness()).workers[0]?.degraded?.[0]).toContain(`${named}: the file does not exist`);
    await writeFile(named, "rules: [demo::echo]");
    await becomes("demo::echo", "allow");
    await rm(named);
    await until(async () => (await handle.readiness()).status === "degraded", { timeoutMs: 2_000, what: "degraded" });
    expect((await check("demo::echo")).decision).toBe("allow");
  });
});
