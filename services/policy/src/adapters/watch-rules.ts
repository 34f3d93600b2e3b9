// Looking at the permissions files for as long as the worker runs.
import type { Background, Clock } from "@flotilla/worker";
import type { RulesSource } from "./rules-source.ts";

/** A change counts once it was seen twice: in force within 2 s, with room for a busy machine. */
const pollMs = 300;

export function watchRules(source: RulesSource, clock: Clock): Background {
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(pollMs, stopping.signal);
      if (!stopping.signal.aborted) await source.poll();
    }
  }

  return {
    name: "permissions",
    async start() {
      running = watch();
    },
    async stop() {
      stopping.abort();
      await running;
    },
    readiness() {
      const problem = source.problem();
      if (problem === null) return null;
      const instead = source.rules() === null ? "everything is denied" : "the last good rules are in force";
      return `degraded: permissions are not usable, ${instead}: ${problem}`;
    },
  };
}
