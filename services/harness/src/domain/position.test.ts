import { describe, expect, it } from "vitest";
import { comparePositions, formatPosition, parsePosition } from "./position.ts";

describe("event positions", () => {
  it("reads back every form it writes", () => {
    for (const text of ["0.0", "12.3", "12.3+t-1-1-1.0.0", "999.41+m_A-9.7.123"]) {
      expect(formatPosition(parsePosition(text))).toBe(text);
    }
  });

  it("takes 0 as the start of the session", () => {
    expect(parsePosition("0")).toEqual({ seq: 0, index: 0, text: null });
  });

  it.each(["", "1", "-1.0", "1.x", "1.0+", "1.0+a.b.c", "1.0+a b.0.0", "1.0+m.0", "1.0 ", "9".repeat(20), "1.0\n2.0"])(
    "refuses %j with INVALID_INPUT and the field",
    (text) => {
      expect(() => parsePosition(text)).toThrow(
        expect.objectContaining({ code: "INVALID_INPUT", field: "last-event-id" }),
      );
    },
  );

  it("orders by commit, event, block and offset", () => {
    const sorted = ["0.0", "4.2", "4.2+m.0.3", "4.2+m.0.9", "4.2+m.1.0", "4.3", "11.0"];
    const shuffled = [...sorted].reverse().map((text) => parsePosition(text));
    expect(shuffled.sort(comparePositions).map(formatPosition)).toEqual(sorted);
  });
});
