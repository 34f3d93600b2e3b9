// NATS and Redis die under a running turn: nothing acknowledged is lost, nothing runs twice.
import { until } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { textOf } from "../fleet/client.ts";
import { resultOf, UnderFire } from "./under-fire.ts";

let fire: UnderFire;
beforeAll(async () => {
  fire = await UnderFire.start();
}, 60_000);
afterAll(() => fire?.stop());

const killNats = async (): Promise<void> => {
  const { process } = fire.fleet.nats;
  await process.kill();
  await until(() => process.isRunning(), { what: "NATS is started again" });
};
const lists = (sid: string) => async (): Promise<boolean> => {
  const answer = await fire.client.get("/v1/sessions?limit=1000");
  return answer.body.sessions.some((row: { session_id: string; state: string }) => {
    return row.session_id === sid && row.state === "stopped";
  });
};

describe("SIGKILL of nats-server", () => {
  it("three times within one turn (streaming, tools running, parked) loses and repeats nothing (I1, I4, I10; field: nats-io/nats.go#2063)", async () => {
    const watched = await fire.begin(
      'tokens 60 30\ncall demo::slow {"ms":2500}\ncall demo::echo {"text":"hi"}\n---\ncall demo::refund {"order":"o1","amount":1}\n---\nsay all done',
    );
    const { sid } = watched;
    await watched.streamed("10");
    await killNats();
    await watched.seen("function_execution_start", (data) => data.function_id === "demo::slow");
    await killNats();
    const request = await watched.seen("approval_requested");
    await killNats();
    await fire.decide(sid, request);
    const messages = await fire.expectSound(watched);
    expect(textOf(messages.at(-1))).toBe("all done");
    expect(await fire.starts(sid)).toEqual({ "demo::slow": 1, "demo::echo": 1, "demo::refund": 1 });
    expect(messages.filter((message) => message.is_error === true)).toEqual([]);
    expect(await fire.modelCalls(sid)).toHaveLength(3);
    expect(await fire.client.get("/v1/approvals")).toMatchObject({ body: { approvals: [] } });
  }, 60_000);

  it("keeps large messages possible: a body that does not fit one bus message goes through after it", async () => {
    await killNats();
    await until(async () => (await fire.readyz()) === 200, { what: "the fleet is ready again", timeoutMs: 20_000 });
    const big = "x".repeat(5_000_000);
    const watched = await fire.begin(`say ok\n${big}`);
    const messages = await fire.expectSound(watched);
    expect(textOf(messages[0])).toHaveLength(big.length + 7);
    expect(textOf(messages.at(-1))).toBe("ok");
  }, 60_000);
});

describe("SIGKILL and FLUSHALL of redis-server", () => {
  const script =
    'tokens 30 20\ncall demo::slow {"ms":600}\n---\ncall demo::refund {"order":"o2","amount":1}\n---\nsay end';

  it("in mid-turn: the turn goes on without it, the approval is decided, and the lists are whole afterwards (I7)", async () => {
    const watched = await fire.begin(script);
    await watched.streamed("5");
    await fire.fleet.redis.process.kill();
    const request = await watched.seen("approval_requested");
    await fire.decide(watched.sid, request);
    await fire.expectSound(watched);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::slow": 1, "demo::refund": 1 });
    await until(lists(watched.sid), { what: "the session is listed", timeoutMs: 20_000 });
  }, 60_000);

  it("FLUSHALL while parked: the approval is still listed and decided, older sessions come back into the list (I7)", async () => {
    const before = await fire.begin("say before");
    await fire.expectSound(before);
    const watched = await fire.begin(script);
    const request = await watched.seen("approval_requested");
    await fire.flushRedis();
    await fire.decide(watched.sid, request);
    const messages = await fire.expectSound(watched);
    expect(resultOf(messages, "demo::refund").is_error).toBe(false);
    for (const sid of [before.sid, watched.sid])
      await until(lists(sid), { what: `${sid} is listed again`, timeoutMs: 20_000 });
    expect(await fire.starts(watched.sid)).toEqual({ "demo::slow": 1, "demo::refund": 1 });
  }, 60_000);
});
