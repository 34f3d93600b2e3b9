// When a restart would help a process.
import { describe, expect, it } from "vitest";
import { createLiveness } from "./health.ts";

function aWorker(bus: { connected: boolean; answers: boolean }) {
  const ping = () => (bus.answers ? Promise.resolve(1) : Promise.reject(new Error("silence")));
  return {
    name: "w",
    bus: {
      get connected() {
        return bus.connected;
      },
      ping,
    },
  };
}

describe("liveness", () => {
  it("ends when a connection claims to be up and has not answered for two minutes (field: dapr/dapr#10337)", async () => {
    let now = 0;
    const bus = { connected: true, answers: true };
    const check = createLiveness([aWorker(bus)], () => now);
    expect(await check()).toEqual({ isLive: true, reasons: [] });
    bus.answers = false;
    now = 119_000;
    expect((await check()).isLive).toBe(true);
    now = 121_000;
    expect(await check()).toEqual({ isLive: false, reasons: ["w: the bus has not answered for too long"] });
    bus.answers = true;
    expect((await check()).isLive).toBe(true);
  });

  it("does not end because the bus is away, however long", async () => {
    let now = 0;
    const check = createLiveness([aWorker({ connected: false, answers: false })], () => now);
    for (now = 0; now < 3_600_000; now += 600_000) expect((await check()).isLive).toBe(true);
  });

  it("does not end while a worker still starts", async () => {
    expect((await createLiveness([{ name: "w", bus: undefined }], () => 0)()).isLive).toBe(true);
  });
});
