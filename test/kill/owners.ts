// Who owns which session right now, from the journal's live notices; and how long a take-over took.
import type { Bus } from "@flotilla/bus";
import { type Commit, parseTurnSubject } from "@flotilla/contracts";

interface Seen {
  instance: string;
  isIdle: boolean;
}

export interface Takeover {
  readonly sessionId: string;
  readonly from: string;
  readonly to: string;
  readonly ms: number;
}

export class Owners {
  readonly #owners = new Map<string, Seen>();
  readonly #orphans = new Map<string, { instance: string; killedAt: number }>();
  readonly takeovers: Takeover[] = [];
  commits = 0;
  bytes = 0;

  constructor(bus: Bus) {
    bus.nc.subscribe("live.turn.>", {
      callback: (error, message) => {
        if (error !== null) return;
        const parsed = parseTurnSubject(message.subject);
        if (parsed?.part.kind !== "commit" || parsed.part.commit === "step") return;
        this.commits += 1;
        this.bytes += message.data.length;
        this.#take(parsed.sessionId, parsed.part.commit === "idle", message.json<Commit>().owner.instance);
      },
    });
  }

  #take(sessionId: string, isIdle: boolean, instance: string): void {
    this.#owners.set(sessionId, { instance, isIdle });
    const orphan = this.#orphans.get(sessionId);
    if (orphan === undefined) return;
    // The victim's last commit may be seen after its death; when it was an idle one, there is nothing to take over.
    if (orphan.instance !== instance || isIdle) this.#orphans.delete(sessionId);
    if (orphan.instance === instance) return;
    this.takeovers.push({
      sessionId,
      from: orphan.instance,
      to: instance,
      ms: Math.round(performance.now() - orphan.killedAt),
    });
  }

  instanceOf(sessionId: string): string | null {
    return this.#owners.get(sessionId)?.instance ?? null;
  }

  /** Every session that the instance was running waits for another owner from now on. */
  killed(instance: string): void {
    const killedAt = performance.now();
    for (const [sessionId, seen] of this.#owners) {
      if (seen.instance === instance && !seen.isIdle) this.#orphans.set(sessionId, { instance, killedAt });
    }
  }

  /** Sessions that nobody has taken over yet. */
  get orphans(): string[] {
    return [...this.#orphans.keys()];
  }
}
