// session-inbox::push, peek and drain: the inboxes of a running turn.
import { acceptInbox, type Bus } from "@flotilla/bus";
import {
  type AgentMessage,
  type DrainBody,
  type InboxBody,
  inboxDrain,
  inboxPeek,
  inboxPush,
  randomId,
  type StoredCommit,
  type StoredInput,
  shardOf,
} from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { type HandlerContext, type Implementation, implement } from "@flotilla/worker";
import { untilApplied } from "../adapters/applied-input.ts";
import { drainedBy, type InboxName, type InputRef } from "../domain/inbox.ts";
import { requireSession } from "./known-session.ts";
import { replyReserveMs } from "./tree-write.ts";

export function inboxFunctions(bus: Bus): Implementation[] {
  return [
    implement(inboxPush, async (_, { name, session_id, message_id, item }) => {
      const accepted = await acceptInbox(bus, name, { session_id, message_id, messages: [item] });
      return { ok: true as const, message_id: accepted.message_id };
    }),
    implement(inboxPeek, async (_, { name, session_id: sessionId }) => {
      await requireSession(bus, sessionId);
      const tail = await bus.journal.tail(sessionId, { fresh: true });
      const waiting = await waitingIn(bus, sessionId, name, tail);
      return { items: await bodiesOf(bus, sessionId, waiting) };
    }),
    implement(inboxDrain, async (context, { name, session_id: sessionId }) => {
      await requireSession(bus, sessionId);
      return { items: await drain(bus, context, sessionId, name) };
    }),
  ];
}

/** What the newest commit keeps pending, and what no commit has taken yet. */
async function waitingIn(bus: Bus, sessionId: string, name: InboxName, tail: StoredCommit | null): Promise<InputRef[]> {
  const pending = tail?.commit.pending ?? [];
  const untaken = await bus.journal.readInputs(sessionId, tail?.commit.cursor ?? 0);
  return [...pending, ...untaken].filter((input) => input.kind === name);
}

async function drain(bus: Bus, context: HandlerContext, sessionId: string, name: InboxName): Promise<AgentMessage[]> {
  const tail = await bus.journal.tail(sessionId, { fresh: true });
  // Nothing to take away: no input that would have to wake an idle session.
  if ((await waitingIn(bus, sessionId, name, tail)).length === 0) return [];
  const body: DrainBody = { name };
  const stored = await bus.journal.publishInput(sessionId, "drain", randomId(), body);
  if (stored.kind !== "stored") throw new FlotillaError("BUS_UNAVAILABLE", "the input was refused without a cause");
  const { seq } = stored;
  const limits = { deadline: context.deadline - replyReserveMs, signal: context.signal };
  const { before, commit } = await untilApplied(bus, { sessionId, seq, fromSeq: tail?.seq ?? 1 }, limits);
  const taken = await bus.journal.readInputs(sessionId, before?.commit.cursor ?? 0);
  return bodiesOf(bus, sessionId, drainedBy(commit.commit, before?.commit.pending ?? [], taken, name));
}

async function bodiesOf(bus: Bus, sessionId: string, inputs: readonly InputRef[]): Promise<AgentMessage[]> {
  const shard = shardOf(sessionId, bus.journal.shards);
  const stored = await Promise.all(inputs.map(({ seq }) => bus.journal.readInputAt(seq, shard)));
  return stored.flatMap((input) => (input === null ? [] : (input as StoredInput<InboxBody>).body.messages));
}
