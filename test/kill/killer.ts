// Places the kills of a run: one edge after the other, in shuffled rounds, so that every edge is hit equally often.
//
// K1 The edge that is due stays due until a kill was placed on it; none is skipped.
// K2 A kill hits the session's living owner, and only while every replica is there and nothing waits to be taken over, so
//    that the time of a take-over is that of one fault.
import { seededRandom } from "./random.ts";
import { edges } from "./script.ts";

/** What the killer needs to know and do. */
export interface KillGround {
  readonly replicas: number;
  /** The replica that runs the session; null while nobody has committed to it, undefined while its owner is dead. */
  ownerOf(sessionId: string): number | null | undefined;
  /** Whether every replica runs, and every session of the last victim has another owner. */
  isWhole(): boolean;
  /** Kills the replica and starts it again; resolves when it is ready. */
  strike(replica: number): Promise<void>;
}

export interface KillerOptions {
  readonly ground: KillGround;
  readonly kills: number;
  readonly seed: number;
  /** Least time between two kills, so that a step is not killed again before it was taken over. */
  readonly gapMs: number;
}

export class Killer {
  readonly #options: KillerOptions;
  readonly #order: () => number;
  readonly #choice: () => number;
  #round: string[] = [];
  #lastAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> = Promise.resolve();
  #isBusy = false;
  kills = 0;
  readonly byEdge: Record<string, number> = Object.fromEntries(edges.map((edge) => [edge, 0]));

  constructor(options: KillerOptions) {
    this.#options = options;
    this.#order = seededRandom(options.seed);
    this.#choice = seededRandom(options.seed + 1);
    this.#nextRound();
  }

  get isDone(): boolean {
    return this.kills >= this.#options.kills;
  }

  /** The edge that the next kill waits for. */
  get due(): string | undefined {
    return this.isDone ? undefined : this.#round.at(-1);
  }

  /** A session has just reached the edge. Whether a kill was placed on it. */
  atEdge(sessionId: string, edge: string): boolean {
    if (this.due !== edge || this.#isBusy || performance.now() - this.#lastAt < this.#options.gapMs) return false;
    const { ground } = this.#options;
    const owner = ground.ownerOf(sessionId);
    if (owner === undefined) return false;
    const replica = owner ?? Math.floor(this.#choice() * ground.replicas);
    if (!ground.isWhole()) return false;
    this.#round.pop();
    if (this.#round.length === 0) this.#nextRound();
    this.kills += 1;
    this.byEdge[edge] = (this.byEdge[edge] ?? 0) + 1;
    this.#lastAt = performance.now();
    this.#isBusy = true;
    this.#running = ground.strike(replica).finally(() => {
      this.#isBusy = false;
    });
    return true;
  }

  settled(): Promise<void> {
    return this.#running;
  }

  #nextRound(): void {
    this.#round = shuffled(edges, this.#order);
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
  }
  return copy;
}
