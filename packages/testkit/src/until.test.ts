import { describe, expect, it } from "vitest";
import { until } from "./until.ts";

describe("until", () => {
  it("answers the first truthy value", async () => {
    let calls = 0;
    expect(await until(() => (++calls < 3 ? null : { calls }), { what: "three calls", intervalMs: 1 })).toEqual({
      calls: 3,
    });
  });

  it("takes an error for 'not yet', and names it when time is up", async () => {
    const check = (): boolean => {
      throw new Error("still closed");
    };
    await expect(until(check, { what: "the door is open", timeoutMs: 20, intervalMs: 1 })).rejects.toThrow(
      "not within 20 ms: the door is open: still closed",
    );
  });

  it("looks once more after the time is up rather than never", async () => {
    expect(await until(() => true, { what: "at once", timeoutMs: 0 })).toBe(true);
  });
});
