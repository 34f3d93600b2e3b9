// Which worker a call goes to.
//
// C1 No look-up on the call path: the route comes from the registry's table.
// C2 None live but in a manifest: wait until the deadline, then WORKER_UNAVAILABLE. In no manifest: FUNCTION_NOT_FOUND at
//    once, with a hint.
import { defaultGrants, type FunctionManifest } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { cancelledError } from "./call-reply.ts";
import { nearest } from "./nearest.ts";
import type { LiveRegistry } from "./registry.ts";
import type { CallOptions } from "./types.ts";

export interface Target {
  readonly worker: string;
  readonly fn: FunctionManifest;
  readonly live: boolean;
}

/** Throws FUNCTION_NOT_FOUND when no manifest offers the function (for a pinned worker: when its manifest does not). */
export function targetOf(registry: LiveRegistry, functionId: string, worker: string | undefined): Target {
  if (worker === undefined) {
    const route = registry.resolve(functionId);
    if (route === null) throw functionNotFound(registry, functionId);
    return route;
  }
  const fn = registry.offerOf(worker, functionId);
  if (fn === null) {
    throw new FlotillaError("FUNCTION_NOT_FOUND", `worker ${worker} does not offer ${functionId}`, {
      field: "function_id",
    });
  }
  return { worker, fn, live: registry.isLive(worker) };
}

/** C2. */
export async function liveTargetOf(
  registry: LiveRegistry,
  functionId: string,
  options: CallOptions,
  deadline: number,
): Promise<Target> {
  for (;;) {
    if (options.signal?.aborted === true) throw cancelledError(functionId);
    const target = targetOf(registry, functionId, options.worker);
    if (target.live) return target;
    const left = deadline - Date.now();
    if (left <= 0) {
      const message = `no worker that offers ${functionId} is live`;
      throw new FlotillaError("WORKER_UNAVAILABLE", message, { retryAfterMs: 1_000 });
    }
    await registry.changed(left, options.signal);
  }
}

function functionNotFound(registry: LiveRegistry, functionId: string): FlotillaError {
  const known = registry.functions().map((route) => route.fn.id);
  const near = nearest(functionId, known);
  const namespace = functionId.split("::", 1)[0] ?? "";
  const isReserved = Object.hasOwn(defaultGrants, namespace);
  const hint = near !== null ? `; did you mean ${near}?` : isReserved ? `; ${namespace} is a reserved namespace` : "";
  return new FlotillaError("FUNCTION_NOT_FOUND", `no worker offers ${functionId}${hint}`, {
    field: "function_id",
    details: near === null ? undefined : { did_you_mean: near },
  });
}
