// session-tree::list and rebuild: the two that need Redis.
import type { Bus } from "@flotilla/bus";
import { sessionList, sessionRebuild } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { State } from "@flotilla/state";
import { type Implementation, implement } from "@flotilla/worker";
import { untilCaughtUp } from "../adapters/caught-up.ts";
import type { Projector } from "../adapters/projector.ts";
import type { Repair } from "../adapters/repair.ts";

export interface TreeIndexDeps {
  readonly bus: Bus;
  readonly state: State;
  readonly projector: Projector;
  readonly repair: Repair;
  readonly listWaitMs: number;
}

const lockPollMs = 100;

export function treeIndexFunctions(deps: TreeIndexDeps): Implementation[] {
  const { bus, state, projector, repair, listWaitMs } = deps;
  return [
    implement(sessionList, async (_, query) => {
      await untilCaughtUp({ bus, projector, repair, waitMs: listWaitMs });
      const { sessions, total } = await state.listSessions(query);
      return { sessions: sessions.map((row) => ({ ...row })), total };
    }),
    implement(sessionRebuild, async (context) => {
      const startedAt = performance.now();
      for (;;) {
        const rebuilt = await repair.rebuild({ dropCurrent: false, signal: context.signal });
        if (rebuilt !== null) {
          return { rebuilt: true as const, ...rebuilt, duration_ms: Math.round(performance.now() - startedAt) };
        }
        if (context.signal.aborted || Date.now() > context.deadline) {
          throw new FlotillaError("TIMEOUT", "another replica is repairing the projection");
        }
        await new Promise((resolve) => setTimeout(resolve, lockPollMs));
      }
    }),
  ];
}
