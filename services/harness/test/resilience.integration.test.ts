// What the front door does when its surroundings fail: a lost bus, a slow reader, workers that are away.
import { connect, type Socket } from "node:net";
import type { Bus } from "@flotilla/bus";
import { subjects } from "@flotilla/contracts";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { aCommit, aFrame, aModelCall, anAssistant, aRecord, aText, aTurn, framesOf, joined } from "./builders.ts";
import { SseClient } from "./sse-client.ts";
import { Committer, connectAs, offer, startHarness, type TestHarness } from "./support.ts";

let nats: StartedNats;
let operator: Bus;
let harness: TestHarness;
const open: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  nats = await startNats();
  operator = await connectAs(nats, "operator");
  harness = await startHarness(nats, { FLOTILLA_SSE_BUFFER_BYTES: "200000" });
});
afterEach(async () => {
  await nats.thaw();
  for (const close of open.splice(0).reverse()) await close();
  await harness.stop();
  await operator.close();
  await nats.stop();
});

async function readyStatus(): Promise<{ status: number; body: { status: string; checks: Record<string, string> } }> {
  const response = await fetch(`${harness.url}/readyz`);
  return { status: response.status, body: (await response.json()) as never };
}

async function aWorker(name: string, ...ids: string[]): Promise<{ stop(): Promise<void> }> {
  const bus = await connectAs(nats, name);
  open.push(() => bus.close());
  return offer(bus, Object.fromEntries(ids.map((id) => [id, () => ({ sessions: [], total: 0 })])));
}

async function aFleet(): Promise<{ session: { stop(): Promise<void> } }> {
  await aWorker("turn-orchestrator", "run::start");
  await aWorker("policy", "policy::check_permissions");
  await aWorker("provider-scripted", "provider::scripted::stream");
  await aWorker("approval-gate", "approval::resolve");
  await aWorker("models-catalog", "models::get");
  return { session: await aWorker("session", "session-tree::list") };
}

/** A reader that asks for the stream and then takes nothing, or only when told to. */
async function aRawReader(sid: string): Promise<Socket> {
  const { port } = new URL(harness.url);
  const socket = connect({ host: "127.0.0.1", port: Number(port) });
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(`GET /v1/sessions/${sid}/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nLast-Event-ID: 0\r\n\r\n`);
  open.push(async () => socket.destroy());
  return socket;
}

describe("readiness", () => {
  it("is ready when turns can run, degraded when the projection is away, unavailable on a frozen bus", async () => {
    const { session } = await aFleet();
    await until(async () => (await readyStatus()).body.status === "ready", { what: "the door is ready" });
    await session.stop();
    const degraded = await until(
      async () => {
        const answer = await readyStatus();
        return answer.body.status === "degraded" && answer;
      },
      { what: "the door is degraded" },
    );
    expect(degraded.status).toBe(200);
    await nats.freeze();
    await until(async () => (await readyStatus()).status === 503, {
      timeoutMs: 15_000,
      what: "not ready on a frozen bus",
    });
    await nats.thaw();
    await until(async () => (await readyStatus()).status === 200, { timeoutMs: 30_000, what: "ready again" });
  }, 90_000);

  it("waits for the workers that its fleet starts before it is ready for the first time", async () => {
    const late = await startHarness(nats, { FLOTILLA_READY_WORKERS: "demo, policy" });
    open.push(() => late.stop());
    await aFleet();
    const status = async () =>
      (await (await fetch(`${late.url}/readyz`)).json()) as { status: string; checks: Record<string, string> };
    await until(async () => (await status()).checks.workers === "waiting for demo", { what: "only demo is missing" });
    expect((await status()).status).toBe("unavailable");
    const demo = await aWorker("demo", "demo::echo");
    await until(async () => (await status()).status === "ready", { what: "the door is ready" });
    await demo.stop();
    await until(() => late.bus.registry.resolve("demo::echo")?.live === false, { what: "demo has left" });
    expect((await status()).status).toBe("ready");
  });
});

describe("a lost bus", () => {
  it("goes on with the stream after nats-server was killed, without loss or repetition (field: nats-server#5679)", async () => {
    const committer = new Committer(operator, "lost");
    const turn = aTurn({ turnId: "t-a", message: anAssistant([aText("one two three")]), seqNo: 1, sessionId: "lost" });
    await committer.commit(turn.commits[0] as never);
    const client = new SseClient(`${harness.url}/v1/sessions/lost/events`);
    open.push(() => client.disconnect());
    await client.connect();
    await client.seen("turn_state_changed");
    const frames = framesOf(turn.messageId, [aText("one two three")], [4]);
    for (const frame of frames.slice(0, 1)) operator.nc.publish(subjects.tokens("lost"), JSON.stringify(frame));
    await operator.deltas.append("lost", turn.messageId, joined(frames.slice(0, 1)));
    await client.until(() => client.textOf(turn.messageId) === "one ", "the first frame");
    await nats.kill("SIGKILL");
    await until(() => !harness.bus.connected, { what: "the harness has noticed" });
    await nats.restart();
    await until(() => operator.connected, { timeoutMs: 20_000, what: "the operator is back" });
    await operator.deltas.append("lost", turn.messageId, joined(frames.slice(1)));
    await client.until(() => client.textOf(turn.messageId) === "one two three", "the text stored meanwhile", 20_000);
    await committer.commit(turn.commits[1] as never, "idle");
    await client.seen("agent_end", 20_000);
    expect(client.types().filter((type) => type === "message_complete")).toHaveLength(1);
    expect(client.isOpen).toBe(true);
  }, 60_000);
});

describe("readers", () => {
  it("closes one that takes nothing while more and more waits for it", async () => {
    const state = aRecord({ session_id: "slow", model_call: aModelCall("m") });
    await new Committer(operator, "slow").commit(aCommit(1, { state }));
    const text = "x".repeat(100_000);
    const frameOf = (n: number) => aFrame("m", n, 0, n * text.length, text);
    await operator.deltas.append("slow", "m", [frameOf(0)]);
    const socket = await aRawReader("slow");
    let head = "";
    socket.on("data", (data) => {
      head += data.toString().slice(0, 20_000);
    });
    await until(() => head.includes("message_update"), { what: "the stream is live" });
    socket.pause();
    let isClosed = false;
    socket.once("close", () => {
      isClosed = true;
    });
    let n = 1;
    await until(
      () => {
        operator.nc.publish(subjects.tokens("slow"), JSON.stringify(frameOf(n)));
        n++;
        // Only a reading socket learns that the other end has hung up.
        if (n > 200) socket.resume();
        return isClosed;
      },
      { timeoutMs: 20_000, what: "the slow reader is closed" },
    );
    expect(n).toBeGreaterThan(2);
    const next = new SseClient(`${harness.url}/v1/sessions/slow/events`);
    open.push(() => next.disconnect());
    expect((await next.connect()).status).toBe(200);
  }, 60_000);

  it("gives a long session to a reader that takes its time, however much more than the buffer it is", async () => {
    const committer = new Committer(operator, "long");
    for (let n = 0; n < 60; n++) {
      const message = anAssistant([aText(`${n} ${"y".repeat(20_000)}`)]);
      const turn = aTurn({ turnId: `t-${n}`, message, seqNo: n * 2 + 1, sessionId: "long" });
      for (const commit of turn.commits) await committer.commit(commit);
    }
    const client = new SseClient(`${harness.url}/v1/sessions/long/events`);
    open.push(() => client.disconnect());
    await client.connect({ lastEventId: "0" });
    await client.until(
      () => client.types().filter((type) => type === "agent_end").length === 60,
      "all sixty turns",
      20_000,
    );
    expect(client.textOf("t-59-1-1")).toMatch(/^59 y+$/);
  }, 60_000);

  it("ends its streams when it stops, so that a client goes to another replica at once", async () => {
    const other = await startHarness(nats);
    await new Committer(operator, "moved").commit(aCommit(1, { state: aRecord({ session_id: "moved" }) }));
    const client = new SseClient(`${other.url}/v1/sessions/moved/events`);
    await client.connect();
    await client.seen("snapshot");
    await other.stop();
    await client.until(() => !client.isOpen, "the stream has ended");
    await client.connect({ base: `${harness.url}/v1/sessions/moved/events` });
    expect(client.isOpen).toBe(true);
    await client.disconnect();
  });
});
