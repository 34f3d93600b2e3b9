// A clock that stands still until a test moves it.

export interface FakeClock {
  now(): number;
  /** Resolves when the clock has been moved past `ms`, or at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Moves the clock, waking sleepers in the order of their times and letting their continuations run. */
  advance(ms: number): Promise<void>;
  /** How many sleep now. */
  readonly sleeping: number;
}

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** @param start Epoch ms. */
export function fakeClock(start = 1_700_000_000_000): FakeClock {
  let now = start;
  const sleepers = new Set<Sleeper>();
  return {
    now: () => now,
    get sleeping() {
      return sleepers.size;
    },
    sleep(ms, signal) {
      if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = (): void => {
          sleepers.delete(sleeper);
          signal?.removeEventListener("abort", wake);
          resolve();
        };
        const sleeper: Sleeper = { at: now + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", wake, { once: true });
      });
    },
    async advance(ms) {
      const target = now + ms;
      for (;;) {
        const next = [...sleepers].sort((a, b) => a.at - b.at)[0];
        if (next === undefined || next.at > target) break;
        now = next.at;
        next.wake();
        await settle();
      }
      now = target;
      await settle();
    },
  };
}

/** Lets everything that is ready run before the clock moves on. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
