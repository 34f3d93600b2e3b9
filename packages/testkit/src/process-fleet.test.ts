// Behaviour of the fleet of processes: a turn goes on when its owner is killed, and what was killed can come back.
import { randomId } from "@flotilla/contracts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { apiClient, type ProcessFleet, sessionEvents, startProcessFleet, until } from "./index.ts";

let fleet: ProcessFleet;
beforeAll(async () => {
  fleet = await startProcessFleet({ replicas: { "turn-orchestrator": 2, harness: 2 } });
}, 90_000);
afterAll(() => fleet?.stop());

describe("a process fleet", () => {
  it("has a front door per harness replica and a process per worker", async () => {
    expect(fleet.urls).toHaveLength(2);
    for (const url of fleet.urls) expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(fleet.pid("turn-orchestrator", 0)).not.toBe(fleet.pid("turn-orchestrator", 1));
    expect(() => fleet.pid("turn-orchestrator", 2)).toThrow("no turn-orchestrator-2");
  });

  it("finishes a turn on the other replica when an orchestrator is killed in it, and takes the killed one back", async () => {
    const [url = ""] = fleet.urls;
    const api = apiClient({ url });
    const sid = `kill-${randomId().slice(0, 8)}`;
    const script = "tokens 40 20\n---\nsay done";
    await api.post(`/v1/sessions/${sid}/turns`, {
      provider: "scripted",
      model: "play",
      text: `call demo::echo {}\n${script}`,
    });
    const types: string[] = [];
    for await (const { event } of sessionEvents(api, sid)) {
      types.push(event);
      if (event === "message_update" && types.filter((type) => type === "message_update").length === 3) {
        await fleet.kill("turn-orchestrator", 0);
      }
      if (event === "agent_end") break;
    }
    expect(types.filter((type) => type === "agent_end")).toHaveLength(1);
    expect(fleet.isRunning("turn-orchestrator", 0)).toBe(false);
    const before = fleet.pid("turn-orchestrator", 0);
    await fleet.respawn("turn-orchestrator", 0);
    expect(fleet.pid("turn-orchestrator", 0)).not.toBe(before);
    await until(
      () =>
        fleet.bus.registry.workers().find((row) => row.manifest.worker === "turn-orchestrator")?.instances.length === 2,
      {
        what: "the killed orchestrator is back in the registry",
        timeoutMs: 20_000,
      },
    );
  });

  it("keeps NATS and Redis on their addresses when they are killed", async () => {
    const [nats, redis] = [fleet.nats.process.pid, fleet.redis.process.pid];
    await Promise.all([fleet.nats.process.kill(), fleet.redis.process.kill()]);
    await until(() => fleet.nats.process.pid !== nats && fleet.redis.process.pid !== redis, { what: "both are back" });
    await until(async () => (await fetch(`${fleet.urls[1]}/readyz`)).ok, {
      what: "the fleet is ready",
      timeoutMs: 20_000,
    });
  });
});
