// Sessions as the journal holds them: known or not, whose, in which state, with which messages.
import type { Bus } from "@flotilla/bus";
import { argumentsOf, foldCommits, messagesOf } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { messageAtEdge } from "../domain/money.ts";
import { type SessionDetail, sessionDetail, workspaceOf } from "../domain/session-detail.ts";
import type { Identity } from "../domain/tokens.ts";
import type { Sessions } from "../ports.ts";
import { within } from "./deadline.ts";

const readDeadlineMs = 10_000;

export function createSessions(bus: Pick<Bus, "journal">): Sessions {
  const { journal } = bus;

  const outstanding = async (sessionId: string) => {
    const tail = await journal.tail(sessionId, { fresh: true });
    return { tail, inputs: await journal.readInputs(sessionId, tail?.commit.cursor ?? 0) };
  };

  async function isVisible(sessionId: string, identity: Identity): Promise<boolean> {
    if ((await journal.lastSequence(sessionId)) === 0) return false;
    if (identity.workspace === null) return true;
    const { tail, inputs } = await outstanding(sessionId);
    return workspaceOf(tail, inputs) === identity.workspace;
  }

  /** The arguments are in the transcript alone (I12). */
  async function withArguments(detail: SessionDetail): Promise<SessionDetail> {
    const view = foldCommits(detail.session_id, await journal.readCommits(detail.session_id, 1));
    const awaiting = detail.awaiting_approval.map((call) => ({
      ...call,
      args: argumentsOf(view, call.function_call_id),
    }));
    return { ...detail, awaiting_approval: awaiting };
  }

  return {
    isVisible: (sessionId, identity) => within(readDeadlineMs, "reading the journal", isVisible(sessionId, identity)),
    async require(sessionId, identity) {
      if (await within(readDeadlineMs, "reading the journal", isVisible(sessionId, identity))) return;
      throw new FlotillaError("SESSION_NOT_FOUND", `there is no session ${sessionId}`, { field: "session_id" });
    },
    async detail(sessionId) {
      const { tail, inputs } = await within(readDeadlineMs, "reading the journal", outstanding(sessionId));
      const detail = sessionDetail(sessionId, tail, inputs);
      if (detail.awaiting_approval.length === 0) return detail;
      return within(readDeadlineMs, "reading the journal", withArguments(detail));
    },
    async messages(sessionId) {
      const commits = await within(readDeadlineMs, "reading the journal", journal.readCommits(sessionId, 1));
      const messages = messagesOf(foldCommits(sessionId, commits));
      return messages.map(({ entry_id, message }) => ({ entry_id, message: messageAtEdge(message) }));
    },
  };
}
