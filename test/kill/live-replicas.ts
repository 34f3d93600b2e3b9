// The replicas of a fleet under fire: which instance of each is alive, and how one is ended and brought back.
import type { Bus } from "@flotilla/bus";
import { until } from "@flotilla/testkit";

export interface ReplicaProcesses {
  readonly bus: Bus;
  kill(worker: string, replica: number, signal?: NodeJS.Signals): Promise<void>;
  respawn(worker: string, replica: number): Promise<void>;
}

export class LiveReplicas {
  readonly #fleet: ReplicaProcesses;
  readonly #dead = new Set<string>();

  constructor(fleet: ReplicaProcesses) {
    this.#fleet = fleet;
  }

  /** The replica's registered instance that was not ended here; null while there is none. */
  instanceOf(worker: string, replica: number): string | null {
    const entry = this.#fleet.bus.registry.workers().find(({ manifest }) => manifest.worker === worker);
    const alive = (entry?.instances ?? []).filter(({ instance }) => !this.#dead.has(instance));
    return alive.find(({ instance }) => replicaOf(worker, instance) === replica)?.instance ?? null;
  }

  isDead(instance: string): boolean {
    return this.#dead.has(instance);
  }

  /** Ends the replica; answers the instance that it was. */
  async end(worker: string, replica: number, signal: NodeJS.Signals = "SIGKILL"): Promise<string | null> {
    const instance = this.instanceOf(worker, replica);
    if (instance !== null) this.#dead.add(instance);
    await this.#fleet.kill(worker, replica, signal);
    return instance;
  }

  /** Starts an ended replica again; resolves when it serves. */
  async revive(worker: string, replica: number): Promise<void> {
    await this.#fleet.respawn(worker, replica);
    const what = `${worker}-${replica} is back`;
    await until(() => this.instanceOf(worker, replica), { what, timeoutMs: 30_000 });
  }
}

/** Instances are named `<worker>-<replica>-<random>`. */
export function replicaOf(worker: string, instance: string): number {
  return Number(instance.slice(worker.length + 1).split("-")[0]);
}
