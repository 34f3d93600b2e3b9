// Everything dies at once: every worker, NATS and Redis. What was acknowledged goes on after a new start of the home.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { textOf } from "../fleet/client.ts";
import { decide, resultOf, UnderFire, workers } from "./under-fire.ts";

let home: string;
let fire: UnderFire;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "flotilla-home-"));
  fire = await UnderFire.start({ home });
}, 60_000);
afterAll(async () => {
  await fire?.stop();
  await rm(home, { recursive: true, force: true });
});

/** SIGKILL to every process in the same tick. */
async function killEverything(): Promise<void> {
  const { nats, redis } = fire.fleet;
  const all = [...workers.map((worker) => fire.fleet.kill(worker, 0)), nats.process.kill(), redis.process.kill()];
  await Promise.all(all);
}

it("kill -9 of every process at once: after a restart each turn ends by itself, and parked approvals still decide (I1, I4, I9; field: mastra-ai/mastra#5549, #19301)", async () => {
  const streaming = await fire.begin("tokens 200 20\nsay end");
  const tools = await fire.begin(
    'call demo::slow {"ms":60000}\ncall demo::ship {"order":"o1","ms":5000}\n---\nsay end',
  );
  const parked = await fire.begin('call demo::refund {"order":"o2","amount":1}\n---\nsay end');
  const request = await parked.seen("approval_requested");
  await fire.started(tools.sid, "demo::slow");
  await fire.started(tools.sid, "demo::ship");
  await streaming.streamed("20");
  await killEverything();
  await fire.stop();

  fire = await UnderFire.start({ home });
  const ended = await Promise.all([streaming, tools].map(({ sid }) => fire.expectSound(fire.watch(sid))));
  expect(textOf(ended[0]?.at(-1))).toContain("200 end");
  const slow = resultOf(ended[1] ?? [], "demo::slow");
  expect(textOf(slow)).toContain("unknown");
  expect(resultOf(ended[1] ?? [], "demo::ship").is_error).toBe(false);
  expect(await fire.starts(tools.sid)).toEqual({ "demo::slow": 1, "demo::ship": 2 });
  const ships = (await fire.client.effects(tools.sid)).filter((effect) => effect.function_id === "demo::ship");
  expect(new Set(ships.map((effect) => effect.idempotency_key)).size).toBe(1);

  const pending = await fire.client.get(`/v1/approvals?session_id=${parked.sid}`);
  expect(pending.body.approvals).toMatchObject([{ function_call_id: request.function_call_id }]);
  await decide(fire.client, parked.sid, request, "allow");
  await fire.expectSound(fire.watch(parked.sid));
  expect(await fire.starts(parked.sid)).toEqual({ "demo::refund": 1 });
}, 90_000);
