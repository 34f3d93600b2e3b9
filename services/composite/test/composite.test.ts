// Behaviour of the composite, and of workers that run alone, as the real processes.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { operatorBus, type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

const services = fileURLToPath(new URL("../..", import.meta.url));
let nats: StartedNats;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats.stop());
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

function start(
  service: string,
  env: Record<string, string>,
): { exited: Promise<number | null>; errors: () => string; child: ChildProcess } {
  const child = spawn(process.execPath, [join(services, service, "src", "main.ts")], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: process.env.PATH,
      NATS_URL: nats.address,
      NATS_CREDENTIALS_FILE: nats.credentialsFile,
      FLOTILLA_HOME: mkdtempSync(join(tmpdir(), "composite-")),
      ...env,
    },
  });
  children.push(child);
  const pieces: string[] = [];
  child.stderr?.on("data", (data: Buffer) => pieces.push(data.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { exited, errors: () => pieces.join(""), child };
}

describe("the composite", () => {
  it("runs the named workers, each an instance of its own on the bus, and stops on SIGTERM", async () => {
    const bus = await operatorBus(nats.url);
    const live = (): string[] =>
      bus.registry
        .workers()
        .filter((row) => row.instances.length > 0)
        .map((row) => row.manifest.worker)
        .sort();
    const { exited, child } = start("composite", { WORKERS: "policy,demo" });
    await until(() => live().join() === "demo,policy", { what: "both are registered", timeoutMs: 15_000 });
    child.kill("SIGTERM");
    expect(await exited).toBe(0);
    await until(() => live().length === 0, { what: "both have left" });
    await bus.close();
  });

  it("ends with 78 and the names there are when one is unknown", async () => {
    const { exited, errors } = start("composite", { WORKERS: "policy,demoo" });
    expect(await exited).toBe(78);
    expect(errors()).toContain("there is no worker demoo; there are approval-gate");
  });

  it("ends with 78 before anything opens when a variable of any of its workers is not valid", async () => {
    const { exited, errors } = start("composite", {
      WORKERS: "policy,provider-scripted",
      FLOTILLA_SCRIPTED_WORD_MS: "soon",
      LOG_LEVEL: "loud",
    });
    expect(await exited).toBe(78);
    expect(errors()).toContain("FLOTILLA_SCRIPTED_WORD_MS");
    expect(errors()).toContain("LOG_LEVEL");
  });
});

describe("a worker alone", () => {
  it("runs from its own main and stops on SIGTERM", async () => {
    const bus = await operatorBus(nats.url);
    const { exited, child } = start("policy", {});
    await until(() => bus.registry.resolve("policy::check_permissions")?.live, {
      what: "policy is live",
      timeoutMs: 15_000,
    });
    child.kill("SIGTERM");
    expect(await exited).toBe(0);
    await bus.close();
  });
});
