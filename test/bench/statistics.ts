// Percentiles and the like of measured values.

export interface Spread {
  readonly n: number;
  readonly p50: number;
  readonly p99: number;
}

/** Nearest rank; NaN of no values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.ceil((percent / 100) * sorted.length);
  return sorted[Math.max(0, rank - 1)] ?? Number.NaN;
}

export function spreadOf(values: readonly number[]): Spread {
  return { n: values.length, p50: rounded(percentile(values, 50)), p99: rounded(percentile(values, 99)) };
}

export function median(values: readonly number[]): number {
  return rounded(percentile(values, 50));
}

/** Three significant places after the point are more than the clock is worth. */
export function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
