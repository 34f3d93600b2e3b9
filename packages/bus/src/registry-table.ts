// The registry as a value: who offers what, who is live, and where a call goes. Pure; times are given.
//
// T1 Highest priority first, then the latest first registration, then the name; restarts change nothing.
// T2 A function counts only for workers that its namespace is granted to.
// T3 An instance is dropped by its goodbye, by our own clock, or because nobody answers: never because the bus is away.
import { type FunctionManifest, type InstanceRecord, timings, type WorkerManifest } from "@flotilla/contracts";
import type { Route } from "./types.ts";

export type Grants = Readonly<Record<string, readonly string[]>>;

interface Heard {
  readonly record: InstanceRecord;
  heardAt: number;
}
interface Offer {
  readonly manifest: WorkerManifest;
  readonly fn: FunctionManifest;
}

export class RegistryTable {
  readonly #grants: Grants;
  readonly #manifests = new Map<string, WorkerManifest>();
  readonly #instances = new Map<string, Map<string, Heard>>();
  /** Offers per function id, best first; rebuilt when a manifest changes. */
  #offers: Map<string, Offer[]> | null = null;

  constructor(grants: Grants) {
    this.#grants = grants;
  }

  /** Answers the functions of the manifest that the worker is not granted. */
  putManifest(manifest: WorkerManifest): string[] {
    this.#manifests.set(manifest.worker, manifest);
    this.#offers = null;
    return manifest.functions.map((fn) => fn.id).filter((id) => !isGranted(this.#grants, id, manifest.worker));
  }

  dropManifest(worker: string): void {
    if (this.#manifests.delete(worker)) this.#offers = null;
  }

  putInstance(record: InstanceRecord, heardAt: number): void {
    const instances = this.#instances.get(record.worker) ?? new Map<string, Heard>();
    this.#instances.set(record.worker, instances);
    instances.set(record.instance, { record, heardAt });
  }

  dropInstance(worker: string, instance: string): void {
    this.#instances.get(worker)?.delete(instance);
  }

  /** Nobody answers for this worker: none of its instances is live until it is heard again. */
  dropInstances(worker: string): void {
    this.#instances.delete(worker);
  }

  hasExpired(now: number): boolean {
    return this.#silent(now).length > 0;
  }

  /** Drops what was silent for longer than the TTL. Only to be called when the bus is known to be there (T3). */
  expire(now: number): { worker: string; instance: string }[] {
    const silent = this.#silent(now);
    for (const { worker, instance } of silent) this.dropInstance(worker, instance);
    return silent;
  }

  /** After an outage everybody gets a full TTL to be heard again. */
  touchAll(now: number): void {
    for (const instances of this.#instances.values()) for (const heard of instances.values()) heard.heardAt = now;
  }

  isLive(worker: string): boolean {
    return (this.#instances.get(worker)?.size ?? 0) > 0;
  }

  /** The function as this worker offers it; null when it does not, or has no grant for it. */
  offerOf(worker: string, functionId: string): FunctionManifest | null {
    const offers = this.#byFunction().get(functionId) ?? [];
    return offers.find((offer) => offer.manifest.worker === worker)?.fn ?? null;
  }

  isInstanceLive(worker: string, instance: string): boolean {
    return this.#instances.get(worker)?.has(instance) === true;
  }

  instancesOf(worker: string): InstanceRecord[] {
    return [...(this.#instances.get(worker)?.values() ?? [])].map((heard) => heard.record);
  }

  manifests(): WorkerManifest[] {
    return [...this.#manifests.values()].sort((a, b) => compareNames(a.worker, b.worker));
  }

  /** The best live offer; without one, the best offer, marked as not live. */
  resolve(functionId: string): Route | null {
    const offers = this.#byFunction().get(functionId);
    const best = offers?.[0];
    if (offers === undefined || best === undefined) return null;
    const live = offers.find((offer) => this.isLive(offer.manifest.worker));
    const { manifest, fn } = live ?? best;
    return { worker: manifest.worker, manifest, fn, live: live !== undefined };
  }

  functions(): Route[] {
    return [...this.#byFunction().keys()].flatMap((id) => this.resolve(id) ?? []);
  }

  /** In the order of the ids. */
  #byFunction(): Map<string, Offer[]> {
    if (this.#offers !== null) return this.#offers;
    const offers = new Map<string, Offer[]>();
    for (const manifest of [...this.#manifests.values()].sort(byPrecedence)) {
      for (const fn of manifest.functions) {
        if (!isGranted(this.#grants, fn.id, manifest.worker)) continue;
        const sameId = offers.get(fn.id);
        if (sameId === undefined) offers.set(fn.id, [{ manifest, fn }]);
        else sameId.push({ manifest, fn });
      }
    }
    this.#offers = new Map([...offers].sort(([a], [b]) => compareNames(a, b)));
    return this.#offers;
  }

  #silent(now: number): { worker: string; instance: string }[] {
    return [...this.#instances].flatMap(([worker, instances]) =>
      [...instances]
        .filter(([, heard]) => now - heard.heardAt > timings.instanceTtlMs)
        .map(([instance]) => ({ worker, instance })),
    );
  }
}

function byPrecedence(a: WorkerManifest, b: WorkerManifest): number {
  return b.priority - a.priority || b.first_registered_at - a.first_registered_at || compareNames(a.worker, b.worker);
}

function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A namespace that is not named in the grants is free; `*` at the end of a worker's name matches any suffix. */
export function isGranted(grants: Grants, functionId: string, worker: string): boolean {
  const namespace = functionId.split("::", 1)[0] ?? "";
  if (!Object.hasOwn(grants, namespace)) return true;
  const allowed = grants[namespace] ?? [];
  return allowed.some((name) => (name.endsWith("*") ? worker.startsWith(name.slice(0, -1)) : name === worker));
}
