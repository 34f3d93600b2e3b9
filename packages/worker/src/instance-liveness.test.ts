import type { Bus } from "@flotilla/bus";
import { errors } from "@nats-io/transport-node";
import { describe, expect, it } from "vitest";
import { isInstanceDead } from "./instance-liveness.ts";

type Ping = "answers" | "nobody" | "silence";

function aBus(ping: Ping, over: { connected?: boolean; reconnectedAt?: number; isRegistered?: boolean } = {}): Bus {
  const request = async () => {
    if (ping === "nobody") throw new errors.NoRespondersError("inst.x");
    if (ping === "silence") throw new errors.TimeoutError();
    return {};
  };
  return {
    nc: { request },
    connected: over.connected ?? true,
    reconnectedAt: over.reconnectedAt ?? 0,
    registry: { isInstanceLive: () => over.isRegistered ?? false },
  } as unknown as Bus;
}

describe("an instance", () => {
  it.each<[string, Bus, boolean]>([
    ["answers", aBus("answers"), false],
    ["has no subscription", aBus("nobody"), true],
    ["is silent and not registered", aBus("silence"), true],
    ["is silent but registered", aBus("silence", { isRegistered: true }), false],
    ["cannot be asked: we are away", aBus("nobody", { connected: false }), false],
    // It is on its way back from the same outage: its running call must not become unknown, nor run twice (I4).
    ["has no subscription just after our own reconnect", aBus("nobody", { reconnectedAt: Date.now() }), false],
    ["is silent just after our own reconnect", aBus("silence", { reconnectedAt: Date.now() }), false],
    ["has no subscription long after it", aBus("nobody", { reconnectedAt: Date.now() - 60_000 }), true],
  ])("that %s: dead or not", async (_, bus, isDead) => {
    expect(await isInstanceDead(bus, "demo", "demo-0")).toBe(isDead);
  });
});
