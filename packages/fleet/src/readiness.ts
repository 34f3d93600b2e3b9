// Waiting until a fleet's front door says that turns can run.
import { FleetError } from "./fleet-error.ts";

export interface ReadinessOptions {
  readonly urls: readonly string[];
  /** Why waiting is pointless, or null. */
  readonly failure: () => Error | null;
  /** @default 120000 */
  readonly timeoutMs?: number;
  /** Told now and then what is waited for. */
  readonly report?: (line: string) => void;
}

const defaultTimeoutMs = 120_000;
const pauseMs = 25;
const noticeMs = 10_000;

export async function waitUntilReady(options: ReadinessOptions): Promise<void> {
  const giveUpAt = Date.now() + (options.timeoutMs ?? defaultTimeoutMs);
  for (const url of options.urls) await waitForOne(url, options, giveUpAt);
}

async function waitForOne(url: string, { failure, report }: ReadinessOptions, giveUpAt: number): Promise<void> {
  let noticeAt = Date.now() + noticeMs;
  for (;;) {
    const answer = await readiness(url);
    if (answer.isReady) return;
    const reason = failure();
    if (reason !== null) throw reason;
    if (Date.now() > giveUpAt) throw new FleetError(`the fleet is not ready: ${url}/readyz: ${answer.reason}`);
    if (Date.now() > noticeAt) {
      noticeAt = Date.now() + noticeMs;
      report?.(`waiting for ${url}/readyz: ${answer.reason}`);
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

export async function readiness(url: string): Promise<{ isReady: boolean; reason: string }> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5_000) });
    return { isReady: response.ok, reason: `${response.status} ${await response.text()}` };
  } catch (error) {
    // fetch hides the reason (for example ECONNREFUSED) in its cause.
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    return { isReady: false, reason: cause };
  }
}
