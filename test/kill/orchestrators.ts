// The orchestrator replicas of a fleet under fire: who is alive, who is ready, and how one is killed and brought back.
import type { Bus } from "@flotilla/bus";
import { until } from "@flotilla/testkit";
import type { KillGround } from "./killer.ts";
import type { Owners } from "./owners.ts";

const worker = "turn-orchestrator";

export interface OrchestratorProcesses {
  readonly bus: Bus;
  kill(worker: string, replica: number, signal?: NodeJS.Signals): Promise<void>;
  respawn(worker: string, replica: number): Promise<void>;
}

export class Orchestrators implements KillGround {
  readonly replicas: number;
  readonly #fleet: OrchestratorProcesses;
  readonly #owners: Owners;
  readonly #dead = new Set<string>();

  constructor(fleet: OrchestratorProcesses, owners: Owners, replicas = 2) {
    this.#fleet = fleet;
    this.#owners = owners;
    this.replicas = replicas;
  }

  ownerOf(sessionId: string): number | null | undefined {
    const instance = this.#owners.instanceOf(sessionId);
    if (instance === null) return null;
    return this.#dead.has(instance) ? undefined : replicaOf(instance);
  }

  isReady(replica: number): boolean {
    return this.#instanceOf(replica) !== null;
  }

  async strike(replica: number): Promise<void> {
    await this.end(replica, "SIGKILL");
    await this.#fleet.respawn(worker, replica);
    await this.whenReady(replica);
  }

  /** Ends the replica; its sessions wait for another owner from now on. */
  async end(replica: number, signal: NodeJS.Signals): Promise<void> {
    const instance = this.#instanceOf(replica);
    const ended = this.#fleet.kill(worker, replica, signal);
    if (instance !== null) {
      this.#dead.add(instance);
      this.#owners.killed(instance);
    }
    await ended;
  }

  async whenReady(replica: number): Promise<void> {
    await until(() => this.isReady(replica), { what: `${worker}-${replica} is back`, timeoutMs: 30_000 });
  }

  /** The replica's newest instance that was not killed. */
  #instanceOf(replica: number): string | null {
    const entry = this.#fleet.bus.registry.workers().find(({ manifest }) => manifest.worker === worker);
    const alive = (entry?.instances ?? []).filter(({ instance }) => !this.#dead.has(instance));
    return alive.find(({ instance }) => replicaOf(instance) === replica)?.instance ?? null;
  }
}

/** Instances are named `<worker>-<replica>-<random>`. */
export function replicaOf(instance: string): number {
  return Number(instance.slice(worker.length + 1).split("-")[0]);
}
