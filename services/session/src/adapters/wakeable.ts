// A pause that can be cut short; a wake that comes before the pause counts for the next one.

export interface Wakeable {
  wake(): void;
  wait(ms: number): Promise<void>;
}

/** However often it is woken, a wait takes at least this long, so that a caller in a loop does not spin. */
const leastMs = 20;

export function createWakeable(signal: AbortSignal): Wakeable {
  let isWoken = false;
  let end: (() => void) | null = null;
  const wake = (): void => {
    isWoken = true;
    end?.();
  };
  signal.addEventListener("abort", wake);
  const pause = (ms: number, isCut: boolean): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        end = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      if (isCut) end = done;
    });
  return {
    wake,
    async wait(ms) {
      if (signal.aborted) return;
      await pause(leastMs, false);
      if (!isWoken) await pause(ms - leastMs, true);
      isWoken = false;
    },
  };
}
