// Whether a process can work (readiness) and whether a restart would help it (liveness).
import type { RunningWorker, WorkerHealth } from "./running-worker.ts";

export interface Readiness {
  readonly status: "ready" | "degraded" | "not_ready";
  readonly workers: readonly WorkerHealth[];
}

export interface Liveness {
  readonly isLive: boolean;
  readonly reasons: readonly string[];
}

export async function readinessOf(workers: readonly RunningWorker[]): Promise<Readiness> {
  const health = await Promise.all(workers.map((worker) => worker.health()));
  if (health.length === 0 || health.some(({ ready }) => !ready)) return { status: "not_ready", workers: health };
  return { status: health.some(({ degraded }) => degraded !== undefined) ? "degraded" : "ready", workers: health };
}

/** How long a connection may claim to be up without one round trip (field: dapr/dapr#10337). */
const wedgedAfterMs = 120_000;

interface Probed {
  readonly name: string;
  readonly bus: { readonly connected: boolean; ping(timeoutMs?: number): Promise<number> } | undefined;
}

/** An absent bus is no reason to restart; a connection that says it is up and never answers is. */
export function createLiveness(workers: readonly Probed[], now: () => number): () => Promise<Liveness> {
  const answeredAt = new Map<Probed, number>();
  const check = async (worker: Probed): Promise<string | null> => {
    const { bus } = worker;
    if (bus === undefined || !bus.connected) {
      answeredAt.set(worker, now());
      return null;
    }
    try {
      await bus.ping(2_000);
      answeredAt.set(worker, now());
      return null;
    } catch {
      const since = answeredAt.get(worker) ?? now();
      answeredAt.set(worker, since);
      return now() - since > wedgedAfterMs ? `${worker.name}: the bus has not answered for too long` : null;
    }
  };
  return async () => {
    const reasons = (await Promise.all(workers.map(check))).filter((reason) => reason !== null);
    return { isLive: reasons.length === 0, reasons };
  };
}
