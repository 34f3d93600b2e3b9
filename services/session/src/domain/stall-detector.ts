// Tells a consumer that has work but delivers nothing to anybody from one that is merely busy. Pure.

export interface ConsumerProgress {
  /** Messages of the stream that were never delivered. */
  readonly pending: number;
  /** Delivered and not acknowledged. */
  readonly ackPending: number;
  /** Deliveries made so far, repeated ones included. */
  readonly delivered: number;
}

export interface StallDetector {
  /** True once nothing was delivered for `stallMs` although there is work; then starts counting anew. */
  observe(progress: ConsumerProgress, now: number): boolean;
}

export function createStallDetector(stallMs: number): StallDetector {
  let since: number | null = null;
  let delivered = -1;
  return {
    observe(progress, now) {
      const hasWork = progress.pending + progress.ackPending > 0;
      if (!hasWork || progress.delivered !== delivered || since === null) {
        delivered = progress.delivered;
        since = hasWork ? now : null;
        return false;
      }
      if (now - since < stallMs) return false;
      since = now;
      return true;
    },
  };
}
