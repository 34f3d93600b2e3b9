// Event streams of a real fleet: clients that are cut again and again, on two replicas of the front door.
import type { AssistantMessage, WireEvent } from "@flotilla/contracts";
import { freePort } from "@flotilla/fleet";
import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { definition as harness } from "../../services/harness/src/worker.ts";
import { SseClient } from "../../services/harness/test/sse-client.ts";

let fleet: StartedFleet;
let second: WorkersHandle;
const doors: string[] = [];

beforeAll(async () => {
  fleet = await startFleet();
  const port = await freePort();
  second = runWorkers({
    definitions: [harness],
    env: {
      NATS_URL: fleet.nats.address,
      NATS_CREDENTIALS_FILE: fleet.nats.credentialsFile,
      FLOTILLA_HOME: fleet.home,
      FLOTILLA_PORT: String(port),
      LOG_LEVEL: "error",
    },
  });
  await second.ready();
  doors.push(fleet.url, `http://127.0.0.1:${port}`);
  await until(async () => (await fetch(`${doors[1]}/readyz`)).ok, {
    timeoutMs: 20_000,
    what: "the second door is ready",
  });
}, 60_000);
afterAll(async () => {
  await second.stop();
  await fleet.stop();
}, 30_000);

function eventsUrl(sid: string, door = 0): string {
  return `${doors[door % doors.length]}/v1/sessions/${sid}/events`;
}

async function post(path: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${doors[0]}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

function play(sid: string, script: string): Promise<{ status: number }> {
  const functions = ["demo::echo", "demo::lookup", "demo::refund"];
  return post(`/v1/sessions/${sid}/turns`, {
    message_id: "m1",
    provider: "scripted",
    model: "play",
    functions,
    text: script,
  });
}

const hasEnded = (client: SseClient): boolean => client.types().includes("agent_end");

/** Reads `some` events, cuts the connection, goes on at the other door; until the turn has ended. */
async function readInPieces(sid: string, client: SseClient, next: () => number): Promise<number> {
  let cuts = 0;
  while (!hasEnded(client)) {
    const wanted = client.received.length + 1 + Math.floor(next() * 4);
    await client.connect({ base: eventsUrl(sid, cuts), lastEventId: client.lastId ?? "0" });
    await client.until(() => client.received.length >= wanted || hasEnded(client), "some more events", 15_000);
    await client.disconnect();
    cuts++;
  }
  return cuts;
}

function expectWholeTexts(client: SseClient): void {
  const completed = client.received.flatMap(({ event }) => (event.type === "message_complete" ? [event] : []));
  expect(completed.length).toBeGreaterThan(0);
  for (const { message_id: id, message, body_streamed: streamed } of completed) {
    if (!streamed) continue;
    const texts = client.text.get(id) ?? [];
    for (const [index, block] of (message as AssistantMessage).content.entries()) {
      if (block.type === "text" || block.type === "thinking") expect(texts[index]).toBe(block.text);
      if (block.type === "function_call" && texts[index] !== undefined) {
        expect(JSON.parse(texts[index])).toEqual(block.arguments);
      }
    }
  }
}

/** Everything but the pieces of text, which every reader gets in other portions. */
function landmarks(client: SseClient): [string, string][] {
  return client.received.flatMap(({ id, event }) =>
    event.type === "message_update" || event.type === "snapshot" ? [] : [[id.split("+")[0] ?? "", event.type]],
  );
}

function aGenerator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const script = [
  "think pondering the naïve question 🤔",
  "say Looking it up 🚀",
  "tokens 30 8",
  'call demo::echo {"text": "a🚀b"}',
  'call demo::lookup {"order": 7}',
  "---",
  "fail-first 1 transient",
  "say second answer",
  "tokens 20 8",
  "---",
  "say all done",
].join("\n");

describe("a turn of a real fleet, read in pieces (I10)", () => {
  it.each([1, 2, 3, 4])(
    "has every character and every event exactly once (seed %i)",
    async (seed) => {
      const sid = `pieces-${seed}`;
      expect((await play(sid, script)).status).toBe(202);
      const cut = new SseClient(eventsUrl(sid));
      const whole = new SseClient(eventsUrl(sid, 1));
      await whole.connect({ lastEventId: "0" });
      const cuts = await readInPieces(sid, cut, aGenerator(seed));
      await whole.seen("agent_end", 15_000);
      await whole.disconnect();
      expect(cuts).toBeGreaterThan(5);
      expect(landmarks(cut)).toEqual(landmarks(whole));
      for (const client of [cut, whole]) {
        expectWholeTexts(client);
        expect(client.types().filter((type) => type === "agent_end")).toHaveLength(1);
        const ended = client.received.flatMap(({ event }) =>
          event.type === "function_execution_end" ? [event.function_call_id] : [],
        );
        expect(new Set(ended).size).toBe(2);
        expect(ended).toHaveLength(2);
      }
      const late = new SseClient(eventsUrl(sid));
      await late.connect({ lastEventId: "0" });
      await late.seen("agent_end");
      await late.disconnect();
      expect(landmarks(late)).toEqual(landmarks(whole));
      expectWholeTexts(late);
    },
    60_000,
  );

  it("shows an approval to a client that comes later, takes the decision, and goes on", async () => {
    const sid = "approval-1";
    await play(sid, 'say I will refund it\ncall demo::refund {"order": 7, "amount": 12}\n---\nsay refunded');
    const client = new SseClient(eventsUrl(sid, 1));
    await until(
      async () =>
        (await (await fetch(`${doors[1]}/v1/sessions/${sid}`)).text()).includes('"function_awaiting_approval"'),
      { what: "the turn is parked" },
    );
    await client.connect();
    await client.seen("approval_requested");
    const asked = client.received.find(({ event }) => event.type === "approval_requested")?.event as Extract<
      WireEvent,
      { type: "approval_requested" }
    >;
    const path = `/v1/sessions/${sid}/approvals/${asked.function_call_id}`;
    expect(await post(path, { decision: "allow", args_digest: "sha256:00" })).toMatchObject({ status: 409 });
    expect(await post(path, { decision: "allow", args_digest: asked.args_digest })).toMatchObject({
      status: 200,
      body: { ok: true },
    });
    await client.seen("agent_end", 15_000);
    await client.disconnect();
    expectWholeTexts(client);
    expect(await post(path, { decision: "deny", args_digest: asked.args_digest })).toMatchObject({ status: 409 });
    expect(
      await post(`/v1/sessions/${sid}/approvals/nothing`, { decision: "deny", args_digest: "sha256:00" }),
    ).toMatchObject({ status: 404 });
  }, 60_000);

  it("ends a streaming turn on abort, for every reader, with the text that was sent", async () => {
    const sid = "abort-1";
    await play(sid, "tokens 2000 10");
    const client = new SseClient(eventsUrl(sid));
    await client.connect({ lastEventId: "0" });
    await client.until(() => client.types().filter((type) => type === "message_update").length > 5, "some text");
    const startedAt = Date.now();
    expect(await post(`/v1/sessions/${sid}/abort`, {})).toMatchObject({ status: 200, body: { aborted: true } });
    await client.seen("agent_end");
    expect(Date.now() - startedAt).toBeLessThan(2_000);
    await client.disconnect();
    expectWholeTexts(client);
    expect(client.received.find(({ event }) => event.type === "message_complete")?.event).toMatchObject({
      message: { stop_reason: "aborted" },
    });
  }, 60_000);
});
