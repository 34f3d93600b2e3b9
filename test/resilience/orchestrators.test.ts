// Orchestrators come and go under a running turn: hand-over, rolling restarts, zombies, crash loops, nobody at all.
import { until } from "@flotilla/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { textOf } from "../fleet/client.ts";
import { replicaOf } from "../kill/live-replicas.ts";
import { resultOf, UnderFire, type Watched } from "./under-fire.ts";

const worker = "turn-orchestrator";
let fire: UnderFire;
beforeAll(async () => {
  fire = await UnderFire.start({ replicas: { [worker]: 2 } });
}, 60_000);
afterEach(() => fire.heal());
afterAll(() => fire?.stop());

const ownerOf = async (sid: string): Promise<string> => {
  const tail = await fire.fleet.bus.journal.tail(sid, { fresh: true });
  return tail?.commit.owner.instance ?? "";
};
/** The instance that committed next, and when. */
const nextOwner = (sid: string, former: string): Promise<string> =>
  until(
    async () => {
      const now = await ownerOf(sid);
      return now === former ? null : now;
    },
    { what: `${sid} has another owner than ${former}`, timeoutMs: 20_000, intervalMs: 10 },
  );
const slowTool = async (ms: number): Promise<Watched> => {
  const watched = await fire.begin(`call demo::slow {"ms":${ms}}\n---\nsay end`);
  await fire.started(watched.sid, "demo::slow");
  return watched;
};

describe("without any orchestrator", () => {
  it("a turn is accepted and idempotent, and runs when one comes back (field: bytedance/deer-flow#1087)", async () => {
    for (const replica of [0, 1]) await fire.end(worker, replica);
    const askedAt = performance.now();
    const watched = await fire.begin("say at last", { message_id: "m-zero" });
    expect(performance.now() - askedAt).toBeLessThan(4_000);
    const again = await fire.client.start(watched.sid, "say at last", { message_id: "m-zero" });
    expect([200, 202]).toContain(again.status);
    await fire.revive(worker, 0);
    const messages = await fire.expectSound(watched);
    expect(messages.map(textOf)).toEqual(["say at last", "at last"]);
  }, 60_000);

  it("an approval is decided and another expires; both turns go on when one comes back (I9; field: letta-ai/lettabot#127)", async () => {
    const script = 'call demo::refund {"order":"o1","amount":1}\n---\nsay end';
    const decided = await fire.begin(script);
    const expiring = await fire.begin(script, { approval_ttl_ms: 1_200 });
    const request = await decided.seen("approval_requested");
    const { expires_at } = await expiring.seen("approval_requested");
    for (const replica of [0, 1]) await fire.end(worker, replica);
    await fire.decide(decided.sid, request);
    await until(() => Date.now() > expires_at, { what: "the other approval expires" });
    expect((await fire.client.state(decided.sid)).state).toBe("function_awaiting_approval");
    await fire.revive(worker, 0);
    const [allowed, expired] = await Promise.all([decided, expiring].map((watched) => fire.expectSound(watched)));
    expect(resultOf(allowed ?? [], "demo::refund").is_error).toBe(false);
    expect(textOf(resultOf(expired ?? [], "demo::refund"))).toContain("expired");
    expect(await fire.starts(decided.sid)).toEqual({ "demo::refund": 1 });
    expect(await fire.starts(expiring.sid)).toEqual({});
  }, 60_000);
});

describe("SIGTERM", () => {
  it("hands the session over at once, far below the time a crash takes to be noticed (field: mastra-ai/mastra#19056)", async () => {
    const watched = await slowTool(1_500);
    const owner = await ownerOf(watched.sid);
    const askedAt = performance.now();
    fire.fleet.signal(worker, replicaOf(worker, owner), "SIGTERM");
    await nextOwner(watched.sid, owner);
    expect(performance.now() - askedAt).toBeLessThan(1_200);
    await fire.end(worker, replicaOf(worker, owner), "SIGTERM");
    await fire.revive(worker, replicaOf(worker, owner));
    await fire.expectSound(watched);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::slow": 1 });
  }, 40_000);

  it("six rolling restarts within one tool call are no crash: it goes on, and is still there to be aborted (field: cloudflare/agents PR#1672)", async () => {
    const watched = await slowTool(120_000);
    for (let restart = 0; restart < 6; restart++) {
      const owner = await ownerOf(watched.sid);
      const replica = replicaOf(worker, owner);
      await fire.end(worker, replica, "SIGTERM");
      await Promise.all([nextOwner(watched.sid, owner), fire.revive(worker, replica)]);
    }
    const tail = await fire.fleet.bus.journal.tail(watched.sid, { fresh: true });
    expect(tail?.commit).toMatchObject({ takeovers: 0, state: { state: "function_execute", error: null } });
    expect(tail?.commit.owner.epoch).toBeGreaterThanOrEqual(7);
    await fire.client.post(`/v1/sessions/${watched.sid}/abort`, {});
    const messages = await fire.expectSound(watched);
    expect(textOf(resultOf(messages, "demo::slow"))).toContain("abort");
    const phases = (await fire.client.effects(watched.sid)).map((effect) => effect.phase);
    expect(phases).toEqual(["start", "aborted"]);
  }, 60_000);
});

describe("a zombie", () => {
  it("an owner frozen past its lease stops nobody, commits nothing when it wakes, and nothing runs twice (I2, I4; field: kagent-dev/kagent PR#2490)", async () => {
    const watched = await fire.begin(
      'call demo::slow {"ms":1000}\n---\ncall demo::ship {"order":"o1"}\n---\ncall demo::slow {"ms":2500}\n---\nsay end',
    );
    await fire.started(watched.sid, "demo::slow");
    const zombie = await ownerOf(watched.sid);
    fire.fleet.signal(worker, replicaOf(worker, zombie), "SIGSTOP");
    const askedAt = performance.now();
    // Some of these calls go to the zombie's queue; it finds them there when it wakes.
    const others = await Promise.all(Array.from({ length: 5 }, () => fire.begin("say meanwhile")));
    expect(performance.now() - askedAt).toBeLessThan(5_000);
    const heir = await nextOwner(watched.sid, zombie);
    const takenOverAt = (await fire.fleet.bus.journal.tail(watched.sid, { fresh: true }))?.seq ?? 0;
    await watched.seen("function_execution_end", (data) => data.function_id === "demo::ship");
    for (const other of others) await fire.expectSound(other);
    fire.fleet.signal(worker, replicaOf(worker, zombie), "SIGCONT");
    await fire.expectSound(watched);
    for (const other of others) expect(await fire.modelCalls(other.sid)).toHaveLength(1);
    const later = (await fire.fleet.bus.journal.readCommits(watched.sid, takenOverAt)).map(
      ({ commit }) => commit.owner.instance,
    );
    expect(new Set(later)).toEqual(new Set([heir]));
    expect(await fire.starts(watched.sid)).toEqual({ "demo::slow": 2, "demo::ship": 1 });
    expect(await fire.modelCalls(watched.sid)).toHaveLength(4);
  }, 60_000);
});

describe("a crash loop", () => {
  it("more than three kills in the same step end the turn `failed` with TURN_CRASH_LOOP, and the next turn works (field: cloudflare/agents PR#1826)", async () => {
    const watched = await slowTool(60_000);
    for (let kill = 0; kill < 4; kill++) {
      const owner = await ownerOf(watched.sid);
      const replica = replicaOf(worker, owner);
      await fire.end(worker, replica);
      await Promise.all([nextOwner(watched.sid, owner), fire.revive(worker, replica)]);
    }
    const messages = await fire.expectSound(watched, { state: "failed" });
    expect(await fire.client.state(watched.sid)).toMatchObject({ error: { code: "TURN_CRASH_LOOP" } });
    expect(resultOf(messages, "demo::slow").is_error).toBe(true);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::slow": 1 });
    await fire.client.start(watched.sid, "say alive");
    const after = await fire.expectSound(watched, { turns: 2 });
    expect(textOf(after.at(-1))).toBe("alive");
  }, 60_000);
});
