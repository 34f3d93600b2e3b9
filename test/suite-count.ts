// Counting a suite: what a vitest report says, and what it leaves out.
export interface Count {
  readonly passed: number;
  readonly failed: number;
}

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

/** A file that fails as a whole counts as one failure, and so does a run that failed for a reason no test shows. */
export function countReport(report: unknown, isGreen: boolean): Count {
  if (!isReport(report)) return { passed: 0, failed: 1 };
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  );
  const failed = report.numFailedTests + brokenFiles.length;
  return { passed: report.numPassedTests, failed: !isGreen && failed === 0 ? 1 : failed };
}

export function sum(counts: readonly Count[]): Count {
  return counts.reduce((left, right) => ({ passed: left.passed + right.passed, failed: left.failed + right.failed }));
}

/** A suite in which no test ran has shown nothing. */
export function exitCodeOf(total: Count, tests: Count): number {
  return total.failed > 0 || tests.passed === 0 ? 1 : 0;
}

function isReport(report: unknown): report is Report {
  return typeof report === "object" && report !== null && "numPassedTests" in report && "testResults" in report;
}
