// When a consumer counts as stalled.
import { describe, expect, it } from "vitest";
import { createStallDetector } from "./stall-detector.ts";

describe("stall detector", () => {
  it("calls a consumer stalled that has work and delivers nothing for the whole time, once per time", () => {
    const detector = createStallDetector(100);
    const stuck = { pending: 3, ackPending: 0, delivered: 7 };
    expect([0, 50, 99, 100, 150, 200].map((now) => detector.observe(stuck, now))).toEqual([
      false,
      false,
      false,
      true,
      false,
      true,
    ]);
  });

  it("lets every delivery begin the time anew", () => {
    const detector = createStallDetector(100);
    expect(
      [0, 90, 180, 270].map((now, n) => detector.observe({ pending: 3, ackPending: 1, delivered: n }, now)),
    ).not.toContain(true);
  });

  it("does not count the time in which there is nothing to do", () => {
    const detector = createStallDetector(100);
    detector.observe({ pending: 1, ackPending: 0, delivered: 1 }, 0);
    expect(detector.observe({ pending: 0, ackPending: 0, delivered: 1 }, 90)).toBe(false);
    expect(detector.observe({ pending: 1, ackPending: 0, delivered: 1 }, 500)).toBe(false);
    expect(detector.observe({ pending: 1, ackPending: 0, delivered: 1 }, 600)).toBe(true);
  });

  it("counts deliveries that nobody acknowledges as work", () => {
    const detector = createStallDetector(100);
    detector.observe({ pending: 0, ackPending: 2, delivered: 9 }, 0);
    expect(detector.observe({ pending: 0, ackPending: 2, delivered: 9 }, 100)).toBe(true);
  });
});
