// Behaviour of the suite's count.
import { describe, expect, it } from "vitest";
import { countReport, exitCodeOf, sum } from "./suite-count.ts";

const file = (status: string, ...tests: string[]) => ({
  status,
  assertionResults: tests.map((test) => ({ status: test })),
});
const report = (...testResults: ReturnType<typeof file>[]) => {
  const all = testResults.flatMap((result) => result.assertionResults.map((test) => test.status));
  const count = (status: string): number => all.filter((one) => one === status).length;
  return { numPassedTests: count("passed"), numFailedTests: count("failed"), testResults };
};

describe("countReport", () => {
  it("counts tests that passed and failed, and no skipped ones", () => {
    const counted = countReport(report(file("passed", "passed", "skipped"), file("failed", "passed", "failed")), false);
    expect(counted).toEqual({ passed: 2, failed: 1 });
  });

  it("counts a file that could not be loaded as a failure", () => {
    expect(countReport(report(file("passed", "passed"), file("failed")), false)).toEqual({ passed: 1, failed: 1 });
  });

  it("counts a failure that no test shows, for example an unhandled rejection", () => {
    expect(countReport(report(file("passed", "passed")), false)).toEqual({ passed: 1, failed: 1 });
  });

  it("takes a missing report for a failure", () => {
    expect(countReport(null, true)).toEqual({ passed: 0, failed: 1 });
  });
});

describe("the exit code", () => {
  it("is zero only when something ran and nothing failed", () => {
    const green = { passed: 3, failed: 0 };
    expect(exitCodeOf(sum([{ passed: 2, failed: 0 }, green]), green)).toBe(0);
    expect(exitCodeOf(sum([{ passed: 1, failed: 1 }, green]), green)).toBe(1);
    expect(exitCodeOf({ passed: 2, failed: 0 }, { passed: 0, failed: 0 })).toBe(1);
  });
});
