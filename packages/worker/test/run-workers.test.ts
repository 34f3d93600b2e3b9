// Several workers in one process: how they start, fail and stop together.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { FlotillaError } from "@flotilla/errors";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Background, defineWorker, runWorkers, type WorkerDefinition } from "../src/index.ts";
import { aDefinition, aGate, anEcho, aWork, codeOf, connectCaller, recordLogs, work } from "./support.ts";

let nats: StartedNats;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats.stop());

function run(definitions: WorkerDefinition[], env: Record<string, string> = {}, onFatal?: (error: unknown) => void) {
  return runWorkers({
    definitions,
    env: { NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile, ...env },
    logger: recordLogs().logger,
    onFatal,
  });
}

function failing(name: string): WorkerDefinition {
  return { name, build: () => Promise.reject(new FlotillaError("STORE_UNAVAILABLE", "no Redis")) };
}

describe("runWorkers", () => {
  it("gives each worker its own connection, user and instance, and lists them all when ready", async () => {
    const handle = run([aDefinition({ functions: [anEcho()] }), aDefinition({ name: "policy", functions: [] })]);
    await handle.ready();
    const report = await handle.readiness();
    expect(report).toMatchObject({ status: "ready", workers: [{ worker: "demo" }, { worker: "policy" }] });
    const buses = handle.workers.map(({ bus }) => bus);
    expect(buses[0]?.nc).not.toBe(buses[1]?.nc);
    expect(new Set(handle.workers.map(({ instance }) => instance)).size).toBe(2);
    await Promise.all([handle.stop(), handle.stop()]);
    expect(handle.workers.map(({ state }) => state)).toEqual(["stopped", "stopped"]);
    expect((await handle.readiness()).status).toBe("not_ready");
  });

  it("tells why a worker cannot start, and stops the others", async () => {
    const handle = run([aDefinition({ functions: [anEcho()] }), failing("policy")]);
    expect(await codeOf(handle.ready())).toBe("STORE_UNAVAILABLE");
    expect(handle.workers.map(({ state }) => state)).toEqual(["stopped", "stopped"]);
    await using bus = await connectCaller(nats);
    expect(bus.registry.resolve("probe::echo")?.live).toBe(false);
  });

  it("starts background parts before the functions are offered, and stops them in reverse after they have left", async () => {
    const steps: string[] = [];
    await using bus = await connectCaller(nats);
    const isOffered = (): boolean => bus.registry.resolve(work.id)?.live === true;
    const part = (name: string): Background => ({
      name,
      async start() {
        steps.push(`start ${name} offered=${isOffered()}`);
      },
      async stop() {
        await until(() => !isOffered(), { what: "the worker to leave" });
        steps.push(`stop ${name}`);
        if (name === "b") throw new Error("b cannot stop");
      },
    });
    const handle = run([aDefinition({ functions: [aWork(() => null)], background: [part("a"), part("b")] })]);
    await handle.ready();
    await until(isOffered, { what: "the function to be offered" });
    await handle.stop();
    expect(steps).toEqual(["start a offered=false", "start b offered=false", "stop b", "stop a"]);
  });

  it("stops a worker that is still starting, once it has started", async () => {
    const building = aGate();
    const built = aGate();
    const definition: WorkerDefinition = {
      name: "demo",
      async build() {
        building.open();
        await built.opened;
        return defineWorker({ name: "demo", version: "1.0.0", functions: [anEcho()] });
      },
    };
    const handle = run([definition]);
    await building.opened;
    const stopped = handle.stop();
    built.open();
    await stopped;
    expect(handle.workers[0]?.state).toBe("stopped");
  });

  it("reports a connection that is closed for good as fatal", async () => {
    const fatal: unknown[] = [];
    const handle = run([aDefinition({ functions: [] })], {}, (error) => fatal.push(error));
    await handle.ready();
    await handle.workers[0]?.bus?.nc.close();
    await until(() => fatal.length > 0, { what: "the fatal error" });
    expect(fatal[0]).toMatchObject({ code: "BUS_UNAVAILABLE" });
    await handle.stop();
  });

  it("refuses what cannot be right before anything opens", async () => {
    const twice = [aDefinition({ functions: [] }), aDefinition({ functions: [] })];
    expect(() => run(twice)).toThrow("worker demo is given twice");
    expect(() => run([aDefinition({ name: "stranger", functions: [] })])).toThrow("has no login for worker stranger");
    expect(() => run([], { FLOTILLA_GRANTS: "{" })).toThrow("FLOTILLA_GRANTS: must be JSON");
    const misnamed = run([{ ...aDefinition({ functions: [] }), name: "policy" }]);
    await expect(misnamed.ready()).rejects.toThrow("definition policy builds a worker named demo");
  });

  it("says when the bus refuses the login, and when the admin port is taken", async () => {
    const login = { NATS_URL: nats.address.replace("//", "//demo:wrong@"), NATS_CREDENTIALS_FILE: "" };
    expect(await codeOf(run([aDefinition({ functions: [] })], login).ready())).toBe("BUS_PERMISSION");
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as AddressInfo;
    const handle = run([aDefinition({ functions: [] })], { ADMIN_PORT: String(port) });
    await expect(handle.ready()).rejects.toThrow(`ADMIN_PORT ${port} on 127.0.0.1 cannot be used (EADDRINUSE)`);
    taken.close();
  });
});
