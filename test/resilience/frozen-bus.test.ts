// A NATS server that neither answers nor closes: longer than every lease and time-to-live of ours.
import { until } from "@flotilla/testkit";
import { afterAll, beforeAll, expect, it } from "vitest";
import { UnderFire } from "./under-fire.ts";

let fire: UnderFire;
beforeAll(async () => {
  fire = await UnderFire.start({ replicas: { "turn-orchestrator": 2 } });
}, 60_000);
afterAll(() => fire?.stop());

/** Longer than ack_wait (2 s) and the time-to-live of instance keys (15 s). */
const frozenMs = 16_500;

it("readiness drops within 15 s of a freeze and returns within 30 s of the thaw; every turn goes on by itself (I4; field: dapr/dapr#10337)", async () => {
  const nats = fire.fleet.nats.process;
  const streaming = await fire.begin("tokens 80 50\nsay end");
  const working = await fire.begin('call demo::slow {"ms":2500}\n---\nsay end');
  const parked = await fire.begin('call demo::refund {"order":"o1","amount":1}\n---\nsay end');
  const request = await parked.seen("approval_requested");
  await working.seen("function_execution_start");
  await streaming.streamed("20");

  const frozenAt = performance.now();
  nats.signal("SIGSTOP");
  await until(async () => (await fire.readyz()) === 503, { what: "readiness drops", timeoutMs: 15_000 });
  await until(() => performance.now() - frozenAt > frozenMs, { what: "time passes", timeoutMs: frozenMs + 1_000 });
  nats.signal("SIGCONT");
  await until(async () => (await fire.readyz()) === 200, { what: "readiness returns", timeoutMs: 30_000 });

  await fire.decide(parked.sid, request);
  for (const watched of [streaming, working, parked]) await fire.expectSound(watched);
  expect(await fire.starts(working.sid)).toEqual({ "demo::slow": 1 });
  expect(await fire.starts(parked.sid)).toEqual({ "demo::refund": 1 });
  expect(await fire.modelCalls(streaming.sid)).toHaveLength(1);
}, 120_000);
