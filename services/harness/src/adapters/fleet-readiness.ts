// Whether turns can run: the bus answers, and the workers that a turn needs are live in the registry.
import type { Bus } from "@flotilla/bus";
import { policyCheckPermissions, runStart, sessionList } from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import type { Readiness, ReadinessReport } from "../ports.ts";

export interface ReadinessOptions {
  readonly provider: string;
  /** Must have been live once before the first `ready`. */
  readonly firstWorkers: readonly string[];
  readonly pingTimeoutMs?: number;
}

/** Without these a turn runs, but something around it does not. */
const beside = ["approval::resolve", "models::get"] as const;
const projectionEveryMs = 3_000;
/** While it is away, and at the start, its return should show at once. */
const projectionAwayEveryMs = 250;
const projectionTimeoutMs = 1_500;

export function createReadiness(bus: Bus, options: ReadinessOptions): Readiness {
  const { registry } = bus;
  const awaited = new Set(options.firstWorkers);
  const projection = projectionCheck(bus);

  const busCheck = async (): Promise<string> => {
    if (!bus.connected) return "not connected";
    try {
      await bus.ping(options.pingTimeoutMs ?? 2_000);
      return "ok";
    } catch (error) {
      return ensureFlotillaError(error).message;
    }
  };
  const live = (functionId: string): string => (registry.resolve(functionId)?.live === true ? "ok" : "no live worker");
  const provider = (): string => {
    if (live(`provider::${options.provider}::stream`) === "ok") return "ok";
    const other = registry.functions().some((route) => route.live && /^provider::[^:]+::stream$/.test(route.fn.id));
    return other ? "ok" : "no live provider";
  };
  const firstWorkers = (): string => {
    for (const { manifest, instances } of registry.workers()) if (instances.length > 0) awaited.delete(manifest.worker);
    return awaited.size === 0 ? "ok" : `waiting for ${[...awaited].join(", ")}`;
  };

  return {
    async report(): Promise<ReadinessReport> {
      const [busState, sessions] = await Promise.all([busCheck(), projection()]);
      const needed = {
        bus: busState,
        orchestrator: live(runStart.id),
        policy: live(policyCheckPermissions.id),
        provider: provider(),
        ...(options.firstWorkers.length === 0 ? {} : { workers: firstWorkers() }),
      };
      const optional = { sessions, ...Object.fromEntries(beside.map((id) => [id.split("::")[0], live(id)])) };
      const isOk = (checks: Record<string, string>): boolean => Object.values(checks).every((state) => state === "ok");
      const status = !isOk(needed) ? "unavailable" : isOk(optional) ? "ready" : "degraded";
      return { status, checks: { ...needed, ...optional } };
    },
  };
}

/** The projection (Redis, behind the session worker), asked at most every few seconds. */
function projectionCheck(bus: Bus): () => Promise<string> {
  let state = "not asked yet";
  let askedAt = 0;
  let asking: Promise<void> | null = null;
  const ask = async (): Promise<void> => {
    try {
      await bus.call(sessionList, { limit: 1 }, { timeoutMs: projectionTimeoutMs });
      state = "ok";
    } catch (error) {
      state = ensureFlotillaError(error).message;
    }
    askedAt = Date.now();
    asking = null;
  };
  return async () => {
    if (Date.now() - askedAt >= (state === "ok" ? projectionEveryMs : projectionAwayEveryMs)) {
      asking ??= ask();
      await asking;
    }
    return state;
  };
}
