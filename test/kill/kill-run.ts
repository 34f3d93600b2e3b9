// A kill run: many sessions at once, and a SIGKILL of the owning orchestrator at every edge of their turns.
import { until } from "@flotilla/testkit";
import { checkJournal } from "./journal-check.ts";
import { Killer } from "./killer.ts";
import type { ReplicaProcesses } from "./live-replicas.ts";
import { Orchestrators } from "./orchestrators.ts";
import { Owners, type Takeover } from "./owners.ts";
import { driveSession } from "./session-driver.ts";

/** What a kill run needs of a fleet of processes, two orchestrators among them. */
export interface KillableFleet extends ReplicaProcesses {
  /** Harness addresses. */
  readonly urls: readonly string[];
  readonly nats: { readonly process: { kill(): Promise<void> } };
}

export interface KillRunOptions {
  readonly fleet: KillableFleet;
  readonly kills: number;
  readonly seed: number;
  /** Sessions at once. */
  readonly sessions: number;
  /** Least time between two kills, so that a step is not killed again before it was taken over. */
  readonly gapMs: number;
  /** A SIGKILL of nats-server goes with every so many kills; live notices are lost then, so take-overs are not timed. */
  readonly natsEvery?: number;
  /** The run ends at this time even when kills are left. */
  readonly limitMs: number;
  readonly log: (line: string) => void;
}

export interface KillReport {
  kills: number;
  killsByEdge: Record<string, number>;
  sessions: number;
  wrong: { sessionId: string; problems: string[] }[];
  /** Sessions that nobody took over after their owner was killed. */
  orphans: string[];
  takeovers: number;
  takeoverP50Ms: number;
  takeoverMaxMs: number;
  slowest: Takeover[];
  commits: number;
  seconds: number;
}

export async function killRun(options: KillRunOptions): Promise<KillReport> {
  const owners = new Owners(options.fleet.bus);
  await options.fleet.bus.nc.flush();
  const isTimed = options.natsEvery === undefined;
  const ground = new Orchestrators(options.fleet, owners, isTimed);
  const killer = new Killer({ ...options, ground });
  const startedAt = performance.now();
  const lanes = new Lanes(options, killer, startedAt + options.limitMs);
  const progress = setInterval(() => options.log(`${killer.kills} kills, ${lanes.summary}`), 10_000);
  try {
    await Promise.all(Array.from({ length: options.sessions }, () => lanes.run()));
    await killer.settled();
    if (isTimed) await settleOrphans(owners);
  } finally {
    clearInterval(progress);
  }
  const takeovers = isTimed ? owners.takeovers.toSorted((a, b) => a.ms - b.ms) : [];
  return {
    kills: killer.kills,
    killsByEdge: killer.byEdge,
    sessions: lanes.done,
    wrong: lanes.wrong,
    orphans: isTimed ? owners.orphans : [],
    takeovers: takeovers.length,
    takeoverP50Ms: takeovers[Math.floor(takeovers.length / 2)]?.ms ?? 0,
    takeoverMaxMs: takeovers.at(-1)?.ms ?? 0,
    slowest: takeovers.slice(-3),
    commits: owners.commits,
    seconds: Math.round((performance.now() - startedAt) / 1000),
  };
}

/** A session killed at its last edge may still be on its way to the other owner; what stays is in the report. */
async function settleOrphans(owners: Owners): Promise<void> {
  await until(() => owners.orphans.length === 0, { what: "every orphan has an owner", timeoutMs: 6_000 }).catch(
    () => undefined,
  );
}

/** Sessions one after the other in each lane, until the kills are done or the time is up. */
class Lanes {
  readonly #options: KillRunOptions;
  readonly #killer: Killer;
  readonly #endsAt: number;
  #index = 0;
  done = 0;
  readonly wrong: KillReport["wrong"] = [];

  constructor(options: KillRunOptions, killer: Killer, endsAt: number) {
    this.#options = options;
    this.#killer = killer;
    this.#endsAt = endsAt;
  }

  get summary(): string {
    return `${this.done} sessions, ${this.wrong.length} wrong, next edge ${this.#killer.due}`;
  }

  get #isOver(): boolean {
    return this.#killer.isDone || performance.now() > this.#endsAt;
  }

  async run(): Promise<void> {
    do await this.#drive();
    while (!this.#isOver);
  }

  #atEdge(session: string, edge: string): void {
    const { fleet, natsEvery = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#isOver || !this.#killer.atEdge(session, edge)) return;
    if (this.#killer.kills % natsEvery === 0) void fleet.nats.process.kill();
  }

  async #drive(): Promise<void> {
    const { fleet, log } = this.#options;
    const { sessionId, problems } = await driveSession({
      index: this.#index++,
      urls: fleet.urls,
      timeoutMs: 60_000,
      onEdge: (session, edge) => this.#atEdge(session, edge),
    });
    problems.push(...checkJournal(await fleet.bus.journal.readCommits(sessionId, 1)));
    this.done += 1;
    if (problems.length === 0) return;
    this.wrong.push({ sessionId, problems });
    log(`wrong: ${sessionId}: ${problems.join("; ")}`);
  }
}
