// The orchestrator replicas as the ground of a kill run: whose session is whose, and what happens to a victim.
import type { KillGround } from "./killer.ts";
import { LiveReplicas, type ReplicaProcesses, replicaOf } from "./live-replicas.ts";
import type { Owners } from "./owners.ts";

const worker = "turn-orchestrator";

export class Orchestrators implements KillGround {
  readonly replicas: number;
  readonly #live: LiveReplicas;
  readonly #owners: Owners;

  constructor(fleet: ReplicaProcesses, owners: Owners, replicas = 2) {
    this.#live = new LiveReplicas(fleet);
    this.#owners = owners;
    this.replicas = replicas;
  }

  ownerOf(sessionId: string): number | null | undefined {
    const instance = this.#owners.instanceOf(sessionId);
    if (instance === null) return null;
    return this.#live.isDead(instance) ? undefined : replicaOf(worker, instance);
  }

  isReady(replica: number): boolean {
    return this.#live.instanceOf(worker, replica) !== null;
  }

  async strike(replica: number): Promise<void> {
    await this.end(replica, "SIGKILL");
    await this.#live.revive(worker, replica);
  }

  /** Ends the replica; its sessions wait for another owner from now on. */
  async end(replica: number, signal: NodeJS.Signals): Promise<void> {
    const instance = this.#live.instanceOf(worker, replica);
    const ended = this.#live.end(worker, replica, signal);
    if (instance !== null) this.#owners.killed(instance);
    await ended;
  }

  revive(replica: number): Promise<void> {
    return this.#live.revive(worker, replica);
  }
}
