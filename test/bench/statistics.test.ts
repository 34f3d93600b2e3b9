import { describe, expect, it } from "vitest";
import { median, percentile, spreadOf, sum } from "./statistics.ts";

describe("percentile", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);

  it("is the nearest rank, whatever the order of the values", () => {
    expect([percentile(hundred, 50), percentile(hundred, 99), percentile(hundred, 100)]).toEqual([50, 99, 100]);
  });

  it("of one value is that value, of none is not a number", () => {
    expect(percentile([7], 99)).toBe(7);
    expect(percentile([], 50)).toBeNaN();
  });
});

it("a spread counts its values and rounds to hundredths", () => {
  expect(spreadOf([1.004, 2.006, 3])).toEqual({ n: 3, p50: 2.01, p99: 3 });
});

it("a median of an even number of values is the lower one in the middle", () => {
  expect(median([4, 1, 3, 2])).toBe(2);
});

it("a sum of nothing is zero", () => {
  expect(sum([])).toBe(0);
});
