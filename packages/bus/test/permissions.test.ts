// The bus users against a real server: what each may not do is refused by NATS, and what its job needs works.
import { consumerNames, shardOf, streamNames, subjects } from "@flotilla/contracts";
import { fleetWorkers, type StartedNats, startNats, until } from "@flotilla/testkit";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { permissionsOf } from "../src/index.ts";
import { busOf, rejection, serve } from "./support.ts";

const sid = "s1";
const shard = shardOf(sid, 1);
let nats: StartedNats;
let stack: AsyncDisposableStack;
beforeAll(async () => {
  nats = await startNats({ workers: ["newcomer"] });
});
beforeEach(() => {
  stack = new AsyncDisposableStack();
});
afterEach(() => stack.disposeAsync());
afterAll(() => nats.stop());

/** What the server said against it, or null. */
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
  await nc.close();
  await watching;
  return said;
}

const refused = /permissions violation/i;
const others = (...allowed: string[]): string[] => fleetWorkers.filter((worker) => !allowed.includes(worker));

describe("publishing", () => {
  it.each(others("turn-orchestrator"))(
    "%s cannot write a commit, a timer or an orchestrator's input",
    async (worker) => {
      for (const subject of [
        ...(["step", "run", "idle"] as const).map((kind) => subjects.commit(shard, sid, kind)),
        ...(["timer", "wake", "child"] as const).map((kind) => subjects.input(shard, sid, kind, "i1")),
        subjects.timer(sid, "x"),
        subjects.fired(sid, "x"),
      ]) {
        expect([subject, await refusal(worker, (nc) => nc.publish(subject, "{}"))]).toEqual([
          subject,
          expect.stringMatching(refused),
        ]);
      }
    },
  );

  it.each(fleetWorkers.filter((worker) => !worker.startsWith("provider-")))(
    "%s cannot ask for a credential (I13)",
    async (worker) => {
      const subject = subjects.call("auth-credentials", "auth::get_token");
      expect(await refusal(worker, (nc) => nc.publish(subject, "{}"))).toMatch(refused);
    },
  );

  it.each([
    ["the approval gate cannot start a turn", "approval-gate", subjects.input(shard, sid, "start", "m1")],
    ["the harness cannot decide an approval", "harness", subjects.input(shard, sid, "approval", "c1")],
    ["the session worker cannot start a turn", "session", subjects.input(shard, sid, "start", "m1")],
    ["a provider cannot steer a session", "provider-openai", subjects.input(shard, sid, "steering", "m1")],
    ["a worker cannot write another's registry entry", "demo", subjects.registryWorker("policy")],
    ["a worker cannot write another's instance", "demo", subjects.registryInstance("policy", "p0")],
    ["a worker cannot write another's outcome", "demo", subjects.outcome("policy.s.t.1.t0.1")],
    ["a worker cannot write another's audit trail", "demo", subjects.audit("approval-gate")],
    ["a tool cannot call another worker", "demo", subjects.call("policy", "policy::check_permissions")],
    ["a tool cannot cancel another's call", "demo", subjects.cancel("provider-openai", "k")],
    ["a tool cannot speak as a model", "demo", subjects.tokens(sid)],
    ["the orchestrator cannot write tokens", "turn-orchestrator", subjects.tokens(sid)],
    ["a worker cannot answer into another's inbox unasked", "demo", "_INBOX_harness.x.y"],
    ["a worker cannot change the settings", "demo", "$KV.SETTINGS.turn_shards"],
    ["an unknown worker cannot publish a commit", "newcomer", subjects.commit(shard, sid, "run")],
    ["an unknown worker cannot call functions", "newcomer", subjects.call("demo", "demo::echo")],
  ])("%s", async (_, worker, subject) => {
    expect(await refusal(worker, (nc) => nc.publish(subject, "{}"))).toMatch(refused);
  });

  it.each(fleetWorkers)("%s cannot create, change, empty or delete a stream or consumer", async (worker) => {
    for (const call of [
      "STREAM.CREATE.MINE",
      "STREAM.UPDATE.TURN_STEP_0",
      "STREAM.PURGE.TURN_STEP_0",
      "STREAM.DELETE.TURN_STEP_0",
      "STREAM.MSG.DELETE.TURN_STEP_0",
      "STREAM.PURGE.OBJ_BLOB",
      "CONSUMER.CREATE.OBJ_BLOB.mine",
      "CONSUMER.CREATE.TURN_STEP_0.mine",
      "CONSUMER.DELETE.TURN_STEP_0.turn-step",
    ]) {
      const subject = `$JS.API.${call}`;
      expect([call, await refusal(worker, (nc) => nc.publish(subject, "{}"))]).toEqual([
        call,
        expect.stringMatching(refused),
      ]);
    }
  });

  it("nobody can wipe the bodies with a rollup", async () => {
    const demo = await busOf(stack, nats, "demo");
    const name = await demo.blobs.put(Buffer.from("keep me"));
    const { headers } = await import("@nats-io/transport-node");
    const rollup = headers();
    rollup.set("Nats-Rollup", "all");
    await expect(demo.js.publish("$O.BLOB.M.x", "{}", { headers: rollup })).rejects.toThrow(/rollup/i);
    const reader = await busOf(stack, nats, "policy");
    expect(Buffer.from(await reader.blobs.get(name)).toString()).toBe("keep me");
  });
});

describe("subscribing", () => {
  it.each([
    ["a worker cannot serve another's functions", "demo", "fn.policy.>"],
    ["a worker cannot serve everything", "turn-orchestrator", "fn.>"],
    ["a worker cannot read another's replies", "demo", "_INBOX_harness.>"],
    ["a worker cannot read all replies", "harness", ">"],
    ["a worker cannot hear another's cancellations", "demo", "cancel.provider-openai.>"],
    ["a tool cannot read the journal", "demo", "live.turn.>"],
    ["a tool cannot read token streams", "demo", "tokens.>"],
    ["a provider cannot read other sessions' tokens", "provider-openai", "tokens.*"],
    ["a worker cannot answer another's discovery", "demo", "$SRV.PING.policy"],
    ["an unknown worker cannot serve another's functions", "newcomer", "fn.demo.>"],
  ])("%s", async (_, worker, subject) => {
    const subscribe = (nc: NatsConnection): void => void nc.subscribe(subject, { callback: () => {} });
    expect(await refusal(worker, subscribe)).toMatch(refused);
  });
});

describe("what each job needs works", () => {
  it("doors store their inputs, and a refused one is BUS_PERMISSION", async () => {
    const harness = await busOf(stack, nats, "harness");
    const gate = await busOf(stack, nats, "approval-gate");
    const session = await busOf(stack, nats, "session");
    expect(await harness.journal.publishInput(sid, "start", "m1", {})).toMatchObject({ kind: "stored" });
    expect(await harness.journal.publishInput(sid, "start", "m1", {})).toMatchObject({ kind: "exists" });
    expect(await gate.journal.publishInput(sid, "approval", "c1", {})).toMatchObject({ kind: "stored" });
    expect(await session.journal.publishInput(sid, "append", "a1", {})).toMatchObject({ kind: "stored" });
    for (const bus of [harness, gate, session]) expect(await bus.journal.readInputs(sid, 0)).toHaveLength(3);
    expect(await rejection(gate.journal.publishInput(sid, "start", "m2", {}))).toMatchObject({
      code: "BUS_PERMISSION",
    });
  });

  it("the orchestrator takes work, keeps outcomes, arms timers and cancels", async () => {
    const bus = await busOf(stack, nats, "turn-orchestrator");
    const consumer = await bus.js.consumers.get(streamNames.turnStep(shard), consumerNames.turnStep);
    await bus.journal.publishInput("s2", "wake", "w1", {});
    const message = await consumer.next({ expires: 2_000 });
    message?.working();
    expect(await message?.ackAck()).toBe(true);
    const running = { status: "running", worker: "demo", instance: "d0", epoch: 1, at: 1 } as const;
    expect(await bus.outcomes.write("demo.s2.t.1.t0.1", running, 0)).toBeGreaterThan(0);
    expect(await bus.outcomes.read("demo.s2.t.1.t0.1")).toMatchObject({ record: running });
    const schedule = { specification: new Date(Date.now()), target: subjects.fired("s2", "x") };
    await bus.js.publish(subjects.timer("s2", "x"), "{}", { schedule });
    const timers = await bus.js.consumers.get(streamNames.timer, consumerNames.timerFire);
    expect((await timers.next({ expires: 5_000 }))?.subject).toBe(subjects.fired("s2", "x"));
    expect(await refusal("turn-orchestrator", (nc) => nc.publish(subjects.cancel("demo", "k"), "{}"))).toBeNull();
  });

  it("the projector consumes, providers stream, the harness reads both", async () => {
    const provider = await busOf(stack, nats, "provider-openai");
    const harness = await busOf(stack, nats, "harness");
    const session = await busOf(stack, nats, "session");
    const consumer = await session.js.consumers.get(streamNames.turnStep(shard), consumerNames.projector);
    expect((await consumer.info()).name).toBe(consumerNames.projector);
    const seen: string[] = [];
    harness.nc.subscribe(subjects.tokens(sid), { callback: (_, message) => void seen.push(message.string()) });
    await harness.nc.flush();
    const frame = { turn_id: "t", message_id: "m", n: 0, block: 0, kind: "text", offset: 0, text: "hi" } as const;
    provider.nc.publish(subjects.tokens(sid), JSON.stringify(frame));
    await provider.deltas.append(sid, "m", [frame]);
    await until(() => seen.length === 1, { what: "the token" });
    expect(await harness.deltas.read(sid, "m")).toEqual([frame]);
  });

  it("a worker keeps its own outcomes, reads them from the leader, and replies to its callers", async () => {
    const demo = await busOf(stack, nats, "demo");
    const orchestrator = await busOf(stack, nats, "turn-orchestrator");
    const record = { status: "running", worker: "demo", instance: "d0", epoch: 1, at: 1 } as const;
    expect(await demo.outcomes.write("demo.s3.t.1.t0.1", record, 0)).toBeGreaterThan(0);
    expect(await demo.outcomes.write("demo.s3.t.1.t0.1", record, 0)).toBeNull();
    expect(await demo.outcomes.read("demo.s3.t.1.t0.1", { fresh: true })).toMatchObject({ record });
    expect(await demo.outcomes.read("demo.s3.t.1.t0.1")).toMatchObject({ record });
    await serve(demo, "demo::echo", (request) => request);
    await until(() => orchestrator.registry.resolve("demo::echo")?.live, { what: "demo is live" });
    expect(await orchestrator.callId("demo::echo", { text: "x" })).toEqual({ text: "x" });
  });

  it("an unknown worker joins and serves with what every worker has", async () => {
    const newcomer = await busOf(stack, nats, "newcomer");
    const harness = await busOf(stack, nats, "turn-orchestrator");
    await serve(newcomer, "weather::today", () => ({ sun: true }));
    await until(() => harness.registry.resolve("weather::today")?.live, { what: "the newcomer is live" });
    expect(await harness.callId("weather::today", {})).toEqual({ sun: true });
  });
});

describe("the lists as data", () => {
  it("name auth::get_token for providers only (I13)", () => {
    const mayAsk = fleetWorkers.filter((worker) => {
      const { allow, deny } = permissionsOf(worker, { shards: 1 }).publish;
      const isAllowed = allow.includes("fn.>") || allow.some((subject) => subject.endsWith(".auth.get_token"));
      return isAllowed && !deny.includes("fn.*.auth.get_token");
    });
    expect(mayAsk).toEqual(["provider-anthropic", "provider-openai", "provider-scripted"]);
  });

  it("give no worker a wildcard over the journal, the registry or all of JetStream", () => {
    for (const worker of fleetWorkers) {
      const { allow } = permissionsOf(worker, { shards: 2 }).publish;
      for (const subject of [">", "turn.>", "$JS.>", "$JS.API.>", "$KV.>", "$KV.REGISTRY.>", "$O.>"]) {
        expect(allow).not.toContain(subject);
      }
    }
  });

  it("cover every shard", () => {
    const { allow } = permissionsOf("harness", { shards: 3 }).publish;
    expect(allow).toContain("$JS.API.DIRECT.GET.TURN_STEP_2");
    expect(allow).not.toContain("$JS.API.DIRECT.GET.TURN_STEP_3");
  });
});
