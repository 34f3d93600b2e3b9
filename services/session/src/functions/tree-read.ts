// session-tree::messages and get, from the journal alone: they need no Redis.
import type { Bus } from "@flotilla/bus";
import { branchOf, foldCommits, sessionGet, sessionMessages } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { type Implementation, implement } from "@flotilla/worker";
import { sessionView } from "../domain/session-view.ts";
import { requireSession } from "./known-session.ts";

export function treeReadFunctions(bus: Bus): Implementation[] {
  return [
    implement(sessionMessages, async (_, { session_id: sessionId, branch_leaf: leaf }) => {
      await requireSession(bus, sessionId);
      const view = foldCommits(sessionId, await bus.journal.readCommits(sessionId, 1));
      if (leaf !== undefined && !view.byId.has(leaf)) {
        throw new FlotillaError("NOT_FOUND", `session ${sessionId} has no entry ${leaf}`, { field: "branch_leaf" });
      }
      const branch = branchOf(view, leaf);
      return { messages: branch.map(({ id, message }) => ({ entry_id: id, message })) };
    }),
    implement(sessionGet, async (_, { session_id: sessionId }) => {
      await requireSession(bus, sessionId);
      const tail = await bus.journal.tail(sessionId, { fresh: true });
      const waiting = tail?.commit.state == null ? await bus.journal.readInputs(sessionId, 0) : [];
      return sessionView(sessionId, tail, waiting);
    }),
  ];
}
