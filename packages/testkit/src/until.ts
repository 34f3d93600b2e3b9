// Waiting for a condition in a test: polls, never sleeps blindly, and says what did not happen.

export interface UntilOptions {
  /** @default 10000 */
  readonly timeoutMs?: number;
  /** @default 20 */
  readonly intervalMs?: number;
  /** What is waited for; stands in the error. */
  readonly what: string;
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | "">;

/** Resolves with the first truthy answer. An error of the check counts as "not yet" and is the cause when time is up. */
export async function until<T>(check: () => T | Promise<T>, options: UntilOptions): Promise<Truthy<T>> {
  const timeoutMs = options.timeoutMs ?? 10_000;
  const giveUpAt = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const value = await check();
      if (value) return value as Truthy<T>;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > giveUpAt) {
      const reason = cause instanceof Error ? `: ${cause.message}` : "";
      throw new Error(`not within ${timeoutMs} ms: ${options.what}${reason}`, { cause });
    }
    await new Promise((resolve) => setTimeout(resolve, options.intervalMs ?? 20));
  }
}
