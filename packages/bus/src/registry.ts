// The registry as a worker sees it: the table, kept current by the feed, and this worker's own entry in it.
import { defaultGrants, type FunctionManifest } from "@flotilla/contracts";
import { type FeedDeps, RegistryFeed } from "./registry-feed.ts";
import { type OwnDeps, OwnEntry } from "./registry-own.ts";
import { type Grants, RegistryTable } from "./registry-table.ts";
import type { Registry } from "./types.ts";

export interface LiveRegistry extends Registry {
  isLive(worker: string): boolean;
  /** The function as this worker offers it; null when it does not, or has no grant for it. */
  offerOf(worker: string, functionId: string): FunctionManifest | null;
  /** Follows and reads the registry; resolves when the table is complete. */
  start(): Promise<void>;
  afterReconnect(): Promise<void>;
  stop(): void;
}

export type RegistryDeps = OwnDeps & Omit<FeedDeps, "table" | "onChange"> & { readonly grants: Grants };

export function createRegistry(deps: RegistryDeps): LiveRegistry {
  const table = new RegistryTable({ ...defaultGrants, ...deps.grants });
  const waiters = new Set<() => void>();
  const onChange = (): void => {
    for (const wake of [...waiters]) wake();
  };
  const feed = new RegistryFeed({ ...deps, table, onChange });
  const own = new OwnEntry(deps);

  return {
    start: () => feed.start(),
    async afterReconnect() {
      await Promise.all([own.afterReconnect(), feed.afterReconnect()]);
    },
    stop() {
      feed.stop();
      own.stop();
    },
    isLive: (worker) => table.isLive(worker),
    offerOf: (worker, functionId) => table.offerOf(worker, functionId),
    resolve: (functionId) => table.resolve(functionId),
    functions: () => table.functions(),
    workers: () => table.manifests().map((manifest) => ({ manifest, instances: table.instancesOf(manifest.worker) })),
    isInstanceLive: (worker, instance) => table.isInstanceLive(worker, instance),
    reportNoResponders(worker) {
      table.dropInstances(worker);
      onChange();
    },
    changed: (timeoutMs, signal) => nextChange(waiters, timeoutMs, signal),
    register: (manifest) => own.register(manifest),
    leave: () => own.leave(),
  };
}

function nextChange(waiters: Set<() => void>, timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      waiters.delete(done);
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, timeoutMs);
    waiters.add(done);
    signal?.addEventListener("abort", done, { once: true });
    if (signal?.aborted === true) done();
  });
}
