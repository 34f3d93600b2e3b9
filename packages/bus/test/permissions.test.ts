import { shardOf, subjects } from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bus, connectBus } from "../src/index.ts";

let nats: StartedNats;
const buses: Bus[] = [];

async function busOf(worker: string): Promise<Bus> {
  const bus = await connectBus({
    url: nats.urlFor(worker),
    worker,
    instance: `${worker}-1`,
    logger: createLogger({ level: "error", name: worker }),
  });
  buses.push(bus);
  return bus;
}

/** Publishes with the worker's login; answers what the server said against it, or null. */
async function refusal(worker: string, act: (nc: NatsConnection) => void): Promise<string | null> {
  const { user = "", password = "" } = nats.credentials[worker] ?? {};
  const nc = await connect({
    servers: `127.0.0.1:${nats.port}`,
    user,
    pass: password,
    inboxPrefix: `_INBOX_${worker}`,
  });
  let said: string | null = null;
  const watching = (async () => {
    for await (const status of nc.status()) if (status.type === "error") said = status.error.message;
  })();
  act(nc);
  await nc.flush();
  await nc.flush();
  await nc.close();
  await watching;
  return said;
}

beforeAll(async () => {
  nats = await startNats();
});
afterAll(async () => {
  for (const bus of buses) await bus.close();
  await nats.stop();
});

describe("the bus users of the fleet", () => {
  const sid = "s1";
  const shard = shardOf(sid, 1);
  it.each([
    ["a provider cannot write a commit", "provider-anthropic", subjects.commit(shard, sid, "run")],
    ["the harness cannot write a commit", "harness", subjects.commit(shard, sid, "step")],
    ["the approval gate cannot start a turn", "approval-gate", subjects.input(shard, sid, "start", "m1")],
    ["the harness cannot decide an approval", "harness", subjects.input(shard, sid, "approval", "c1")],
    ["the session worker cannot arm a timer", "session", subjects.timer(sid, "x")],
    ["policy cannot ask for a credential (I13)", "policy", subjects.call("auth-credentials", "auth::get_token")],
    ["the harness cannot ask for a credential (I13)", "harness", subjects.call("auth-credentials", "auth::get_token")],
    ["a worker cannot write another's registry entry", "demo", subjects.registryWorker("policy")],
    ["a worker cannot write another's outcome", "demo", subjects.outcome("policy.s.t.1.t0.1")],
    ["a tool cannot call another worker's functions", "demo", subjects.call("policy", "policy::check_permissions")],
  ])("%s", async (_, worker, subject) => {
    expect(await refusal(worker, (nc) => nc.publish(subject, "{}"))).toMatch(/permissions violation/i);
  });

  it.each([
    ["a worker cannot serve another's functions", "demo", "fn.policy.>"],
    ["a worker cannot read another's replies", "demo", "_INBOX_harness.>"],
    ["a tool cannot read the journal", "demo", "live.turn.>"],
    ["a tool cannot read token streams", "demo", "tokens.>"],
  ])("%s", async (_, worker, subject) => {
    expect(await refusal(worker, (nc) => void nc.subscribe(subject, { callback: () => {} }))).toMatch(
      /permissions violation/i,
    );
  });

  it("lets the doors do their job: the harness stores a start, the gate a decision, the orchestrator commits", async () => {
    const harness = await busOf("harness");
    const gate = await busOf("approval-gate");
    expect(await harness.journal.publishInput(sid, "start", "m1", {})).toMatchObject({ kind: "stored" });
    expect(await gate.journal.publishInput(sid, "approval", "c1", {})).toMatchObject({ kind: "stored" });
    await expect(gate.journal.publishInput(sid, "start", "m2", {})).rejects.toMatchObject({ code: "BUS_PERMISSION" });
  });

  it("lets a worker join, serve and be called", async () => {
    const demo = await busOf("demo");
    const orchestrator = await busOf("turn-orchestrator");
    demo.nc.subscribe("fn.demo.demo.echo", {
      queue: "demo",
      callback: (_, message) => void message.respond(message.data),
    });
    await demo.nc.flush();
    const fn = {
      id: "demo::echo",
      request_schema: {},
      response_schema: {},
      replay: "safe" as const,
      timeout_ms: 1000,
      execution: "parallel" as const,
      agent_visible: true,
      description: "",
    };
    await demo.registry.register({ worker: "demo", version: "1.0.0", priority: 0, functions: [fn], meta: {} });
    await until(() => orchestrator.registry.resolve("demo::echo")?.live, { what: "demo is live" });
    expect(await orchestrator.callId("demo::echo", { text: "x" })).toEqual({ text: "x" });
    const large = { text: "x".repeat(5_000_000) };
    expect(
      await orchestrator.callId("demo::echo", large, { timeoutMs: 10_000 }).catch((error: Error) => error.message),
    ).toBeDefined();
    expect(await orchestrator.blobs.get(await demo.blobs.put(Buffer.from("hello")))).toEqual(Buffer.from("hello"));
  });
});
