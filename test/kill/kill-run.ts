// A kill run: many sessions at once, and a SIGKILL of the owning orchestrator at every edge of their turns.
import type { Bus } from "@flotilla/bus";
import { Owners } from "./owners.ts";
import { seededRandom } from "./random.ts";
import { edges } from "./script.ts";
import { driveSession } from "./session-driver.ts";

/** What a kill run needs of a fleet of processes. */
export interface KillableFleet {
  /** Harness addresses. */
  readonly urls: readonly string[];
  readonly bus: Bus;
  kill(worker: string, replica: number): Promise<void>;
  respawn(worker: string, replica: number): Promise<void>;
}

export interface KillRunOptions {
  readonly fleet: KillableFleet;
  readonly kills: number;
  readonly seed: number;
  /** Sessions at once. */
  readonly sessions: number;
  /** Least time between two kills, so that a step is not killed again before it was taken over. */
  readonly gapMs: number;
  /** The run ends at this time even when kills are left. */
  readonly limitMs: number;
  readonly log: (line: string) => void;
}

export interface KillReport {
  kills: number;
  killsByEdge: Record<string, number>;
  sessions: number;
  wrong: { sessionId: string; problems: string[] }[];
  takeovers: number;
  takeoverP50Ms: number;
  takeoverMaxMs: number;
  commits: number;
  seconds: number;
}

export async function killRun(options: KillRunOptions): Promise<KillReport> {
  const { fleet, log } = options;
  const owners = new Owners(fleet.bus);
  await fleet.bus.nc.flush();
  const killer = new Killer(options, owners);
  const wrong: KillReport["wrong"] = [];
  let index = 0;
  let done = 0;
  const startedAt = performance.now();
  const isOver = (): boolean => killer.kills >= options.kills || performance.now() - startedAt > options.limitMs;
  const lane = async (): Promise<void> => {
    do {
      const mine = index++;
      killer.plan(mine);
      let sessionIndex = "";
      const { sessionId, problems } = await driveSession({
        index: mine,
        urls: fleet.urls,
        timeoutMs: 60_000,
        onEdge: (session, edge) => {
          sessionIndex = session;
          if (!isOver()) killer.atEdge(mine, session, edge);
        },
      });
      done += 1;
      if (problems.length > 0) {
        wrong.push({ sessionId: sessionId === "" ? sessionIndex : sessionId, problems });
        log(`wrong: ${sessionId}: ${problems.join("; ")}`);
      }
    } while (!isOver());
  };
  const progress = setInterval(() => log(`${killer.kills} kills, ${done} sessions, ${wrong.length} wrong`), 10_000);
  await Promise.all(Array.from({ length: options.sessions }, lane));
  clearInterval(progress);
  await killer.settled();
  const times = owners.takeovers.map((takeover) => takeover.ms).sort((a, b) => a - b);
  return {
    kills: killer.kills,
    killsByEdge: killer.byEdge,
    sessions: done,
    wrong,
    takeovers: times.length,
    takeoverP50Ms: Math.round(times[Math.floor(times.length / 2)] ?? 0),
    takeoverMaxMs: Math.round(times.at(-1) ?? 0),
    commits: owners.commits,
    seconds: Math.round((performance.now() - startedAt) / 1000),
  };
}

/** Places one kill per session at one of the edges, one kill at a time. */
class Killer {
  readonly #options: KillRunOptions;
  readonly #owners: Owners;
  readonly #random: () => number;
  readonly #planned = new Map<number, string>();
  #order: string[] = [];
  #lastAt = 0;
  #running: Promise<void> = Promise.resolve();
  #isBusy = false;
  kills = 0;
  readonly byEdge: Record<string, number> = {};

  constructor(options: KillRunOptions, owners: Owners) {
    this.#options = options;
    this.#owners = owners;
    this.#random = seededRandom(options.seed);
  }

  plan(index: number): void {
    if (this.#order.length === 0) this.#order = shuffled(edges, this.#random);
    this.#planned.set(index, this.#order.pop() ?? edges[0]);
  }

  atEdge(index: number, sessionId: string, edge: string): void {
    if (this.#planned.get(index) !== edge || this.#isBusy || performance.now() - this.#lastAt < this.#options.gapMs)
      return;
    this.#planned.delete(index);
    this.#isBusy = true;
    this.#running = this.#kill(sessionId, edge).finally(() => {
      this.#isBusy = false;
    });
  }

  async #kill(sessionId: string, edge: string): Promise<void> {
    const instance = this.#owners.instanceOf(sessionId);
    const replica = Number(/-(\d+)-/.exec(instance ?? "")?.[1] ?? 0);
    this.#lastAt = performance.now();
    this.kills += 1;
    this.byEdge[edge] = (this.byEdge[edge] ?? 0) + 1;
    const killed = this.#options.fleet.kill("turn-orchestrator", replica);
    if (instance !== null) this.#owners.killed(instance);
    await killed;
    await this.#options.fleet.respawn("turn-orchestrator", replica);
  }

  settled(): Promise<void> {
    return this.#running;
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
