import { describe, expect, it } from "vitest";
import { errorCodeOf, msOf, numberOf, repeated, textOf } from "./arguments.ts";

describe("arguments of any type", () => {
  it.each([
    ["x", "x"],
    [5, "5"],
    [{ a: 1 }, '{"a":1}'],
    [null, ""],
    [undefined, ""],
  ])("reads %j as the text %j", (value, text) => expect(textOf(value)).toBe(text));

  it.each([
    [7, 7],
    ["2.5", 2.5],
    [-1, 9],
    ["soon", 9],
    [Number.POSITIVE_INFINITY, 9],
    [{}, 9],
  ])("reads %j as the number %j", (value, number) => expect(numberOf(value, 9)).toBe(number));

  it("waits an hour at most", () => {
    expect(msOf(1e12, 0)).toBe(3_600_000);
    expect(msOf(undefined, 5)).toBe(5);
  });

  it("repeats as often as asked, within 4 Mi characters", () => {
    expect(repeated("ab", 3)).toBe("ababab");
    expect(repeated("ab", undefined)).toBe("ab");
    expect(repeated("ab", 0)).toBe("");
    expect(repeated("x", 200_000)).toHaveLength(200_000);
    expect(repeated("x".repeat(1000), 1e9)).toHaveLength(4 * 1024 * 1024 - ((4 * 1024 * 1024) % 1000));
    expect(repeated("", 5)).toBe("");
  });

  it("makes a code that may go into a header", () => {
    expect(errorCodeOf("CARD_DECLINED")).toBe("CARD_DECLINED");
    expect(errorCodeOf("a b\r\nX: y")).toBe("a_b__X:_y");
    expect(errorCodeOf(undefined)).toBe("DEMO_FAILURE");
    expect(errorCodeOf("x".repeat(99))).toHaveLength(64);
  });
});
