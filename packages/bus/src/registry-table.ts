// The registry as a value: who offers what, who is live, and where a call goes. Pure; times are given.
//
// T1 Highest priority first, then the latest first registration, then the name; restarts change nothing.
// T2 A function counts only for workers that its namespace is granted to.
// T3 An instance is dropped by its goodbye, by our own clock, or because nobody answers: never because the bus is away.
import { defaultGrants, type FunctionManifest, type InstanceRecord, timings, type WorkerManifest } from "@flotilla/contracts";
import type { Route } from "./types.ts";

interface Heard {
  readonly record: InstanceRecord;
  heardAt: number;
}

export class RegistryTable {
  readonly #grants: Readonly<Record<string, readonly string[]>>;
  readonly #manifests = new Map<string, WorkerManifest>();
  readonly #instances = new Map<string, Map<string, Heard>>();
  #routes: Map<string, { manifest: WorkerManifest; fn: FunctionManifest }[]> | null = null;

  constructor(grants: Readonly<Record<string, readonly string[]>> = {}) {
    this.#grants = { ...defaultGrants, ...grants };
  }

  putManifest(manifest: WorkerManifest): void {
    this.#manifests.set(manifest.worker, manifest);
    this.#routes = null;
  }

  dropManifest(worker: string): void {
    this.#manifests.delete(worker);
    this.#routes = null;
  }

  putInstance(record: InstanceRecord, heardAt: number): void {
    const instances = this.#instances.get(record.worker) ?? new Map<string, Heard>();
    this.#instances.set(record.worker, instances);
    instances.set(record.instance, { record, heardAt });
  }

  dropInstance(worker: string, instance: string): void {
    this.#instances.get(worker)?.delete(instance);
  }

  dropInstances(worker: string): void {
    this.#instances.delete(worker);
  }

  /** Drops what was not heard for the TTL; answers whether anything was. Not called while the bus is away (T3). */
  expire(now: number): boolean {
    let hasChanged = false;
    for (const instances of this.#instances.values()) {
      for (const [instance, heard] of instances) {
        if (now - heard.heardAt <= timings.instanceTtlMs) continue;
        instances.delete(instance);
        hasChanged = true;
      }
    }
    return hasChanged;
  }

  /** After an outage everybody gets a full TTL to be heard again. */
  touchAll(now: number): void {
    for (const instances of this.#instances.values()) for (const heard of instances.values()) heard.heardAt = now;
  }

  isLive(worker: string): boolean {
    return (this.#instances.get(worker)?.size ?? 0) > 0;
  }

  isInstanceLive(worker: string, instance: string): boolean {
    return this.#instances.get(worker)?.has(instance) === true;
  }

  instancesOf(worker: string): InstanceRecord[] {
    return [...(this.#instances.get(worker)?.values() ?? [])].map((heard) => heard.record);
  }

  manifests(): WorkerManifest[] {
    return [...this.#manifests.values()];
  }

  manifestOf(worker: string): WorkerManifest | undefined {
    return this.#manifests.get(worker);
  }

  resolve(functionId: string): Route | null {
    const candidates = this.#byFunction().get(functionId) ?? [];
    const live = candidates.find((candidate) => this.isLive(candidate.manifest.worker));
    const chosen = live ?? candidates[0];
    if (chosen === undefined) return null;
    return { worker: chosen.manifest.worker, manifest: chosen.manifest, fn: chosen.fn, live: live !== undefined };
  }

  functions(): Route[] {
    return [...this.#byFunction().keys()].sort().flatMap((id) => this.resolve(id) ?? []);
  }

  #byFunction(): Map<string, { manifest: WorkerManifest; fn: FunctionManifest }[]> {
    if (this.#routes !== null) return this.#routes;
    const routes = new Map<string, { manifest: WorkerManifest; fn: FunctionManifest }[]>();
    for (const manifest of [...this.#manifests.values()].sort(byPrecedence)) {
      for (const fn of manifest.functions) {
        if (!isGranted(this.#grants, fn.id, manifest.worker)) continue;
        routes.set(fn.id, [...(routes.get(fn.id) ?? []), { manifest, fn }]);
      }
    }
    this.#routes = routes;
    return routes;
  }
}

function byPrecedence(a: WorkerManifest, b: WorkerManifest): number {
  return b.priority - a.priority || b.first_registered_at - a.first_registered_at || (a.worker < b.worker ? -1 : 1);
}

export function isGranted(grants: Readonly<Record<string, readonly string[]>>, functionId: string, worker: string): boolean {
  const allowed = grants[functionId.split("::", 1)[0] ?? ""];
  if (allowed === undefined) return true;
  return allowed.some((name) => (name.endsWith("*") ? worker.startsWith(name.slice(0, -1)) : name === worker));
}
