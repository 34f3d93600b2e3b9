// Policy, the approval gate, the session worker and the front door die under a turn.
import { until } from "@flotilla/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { textOf } from "../fleet/client.ts";
import { resultOf, UnderFire } from "./under-fire.ts";

let fire: UnderFire;
beforeAll(async () => {
  fire = await UnderFire.start({ replicas: { harness: 2 } });
}, 60_000);
afterEach(() => fire.heal());
afterAll(() => fire?.stop());

const script = 'tokens 20 20\ncall demo::echo {"text":"e"}\n---\nsay end';

describe("policy", () => {
  const expectDenied = async (watched: Awaited<ReturnType<UnderFire["begin"]>>): Promise<void> => {
    const ended = await watched.seen("function_execution_end");
    const messages = await fire.expectSound(watched);
    const result = resultOf(messages, "demo::echo");
    expect(result).toMatchObject({ is_error: true, details: { denied_by: "gate_unavailable" } });
    expect(await fire.starts(watched.sid)).toEqual({});
    expect(ended.is_error).toBe(true);
  };

  it("killed and not back within 5 s: the call is denied, the turn goes on (I8)", async () => {
    const watched = await fire.begin(script);
    await watched.streamed("5");
    await fire.end("policy");
    await expectDenied(watched);
  }, 40_000);

  it("killed and back in time: the call is allowed (I8)", async () => {
    const watched = await fire.begin(script);
    await watched.streamed("5");
    await fire.replace("policy");
    const messages = await fire.expectSound(watched);
    expect(resultOf(messages, "demo::echo").is_error).toBe(false);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::echo": 1 });
  }, 40_000);

  it("frozen: silent for 5 s, the call is denied; thawed, the next turn is allowed (I8)", async () => {
    fire.fleet.signal("policy", 0, "SIGSTOP");
    const watched = await fire.begin(script);
    await expectDenied(watched);
    fire.fleet.signal("policy", 0, "SIGCONT");
    await fire.client.start(watched.sid, script);
    await fire.expectSound(watched, { turns: 2 });
    expect(await fire.starts(watched.sid)).toEqual({ "demo::echo": 1 });
  }, 40_000);
});

describe("approval-gate", () => {
  it("killed while a call is parked: decided after it came back, from a cold start (field: mastra-ai/mastra#18031)", async () => {
    const watched = await fire.begin('call demo::refund {"order":"o1","amount":1}\n---\nsay end');
    const request = await watched.seen("approval_requested");
    await fire.end("approval-gate");
    const decision = fire.decide(watched.sid, request);
    await fire.revive("approval-gate");
    await decision;
    const messages = await fire.expectSound(watched);
    expect(resultOf(messages, "demo::refund").is_error).toBe(false);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::refund": 1 });
  }, 40_000);
});

describe("session", () => {
  it("killed in mid-turn: the turn ends without it, and its lists are whole once it is back (I7)", async () => {
    const watched = await fire.begin('tokens 30 20\ncall demo::slow {"ms":300}\n---\nsay end');
    await watched.streamed("5");
    await fire.end("session");
    await fire.expectSound(watched);
    await fire.revive("session");
    await until(
      async () => {
        const { body } = await fire.client.get("/v1/sessions?limit=1000");
        return (body.sessions as { session_id: string; state: string }[]).some(
          (row) => row.session_id === watched.sid && row.state === "stopped",
        );
      },
      { what: "the session is listed", timeoutMs: 20_000 },
    );
  }, 40_000);
});

describe("harness", () => {
  it("killed in mid-stream: the client resumes on the other replica, nothing lost and nothing twice (I10; field: vercel/ai PR#19109)", async () => {
    const watched = await fire.begin('tokens 80 20\ncall demo::slow {"ms":300}\n---\ntokens 30 20\nsay end');
    await watched.streamed("20");
    await fire.end("harness", 0);
    await watched.streamed("60");
    await fire.revive("harness", 0);
    await watched.seen("function_execution_start");
    await fire.end("harness", 1);
    const messages = await fire.expectSound(watched);
    expect(textOf(messages[1])).toBe(Array.from({ length: 80 }, (_, i) => i + 1).join(" "));
    expect(await fire.modelCalls(watched.sid)).toHaveLength(2);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::slow": 1 });
  }, 40_000);
});
