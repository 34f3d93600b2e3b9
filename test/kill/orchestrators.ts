// The orchestrator replicas as the ground of a kill run: whose session is whose, and what happens to a victim.
import type { KillGround } from "./killer.ts";
import { LiveReplicas, type ReplicaProcesses, replicaOf } from "./live-replicas.ts";
import type { Owners } from "./owners.ts";

const worker = "turn-orchestrator";

export class Orchestrators implements KillGround {
  readonly replicas = 2;
  readonly #live: LiveReplicas;
  readonly #owners: Owners;
  readonly #isTimed: boolean;

  /** `isTimed`: the owners' notices are complete, so that it is known when nothing waits for an owner. */
  constructor(fleet: ReplicaProcesses, owners: Owners, isTimed: boolean) {
    this.#live = new LiveReplicas(fleet);
    this.#owners = owners;
    this.#isTimed = isTimed;
  }

  ownerOf(sessionId: string): number | null | undefined {
    const instance = this.#owners.instanceOf(sessionId);
    if (instance === null) return null;
    return this.#live.isDead(instance) ? undefined : replicaOf(worker, instance);
  }

  isWhole(): boolean {
    const replicas = Array.from({ length: this.replicas }, (_, replica) => this.#live.instanceOf(worker, replica));
    return replicas.every((instance) => instance !== null) && (!this.#isTimed || this.#owners.orphans.length === 0);
  }

  async strike(replica: number): Promise<void> {
    const instance = this.#live.instanceOf(worker, replica);
    const ended = this.#live.end(worker, replica);
    // Its sessions wait for another owner from now on.
    if (instance !== null) this.#owners.killed(instance);
    await ended;
    await this.#live.revive(worker, replica);
  }
}
