// session-tree::create, append, append_batch: inputs of the journal, answered after the commit that applied them.
import { randomUUID } from "node:crypto";
import { acceptAppend, type Bus, normaliseMessage } from "@flotilla/bus";
import {
  type AgentMessage,
  type MessageInput,
  randomId,
  sessionAppend,
  sessionAppendBatch,
  sessionCreate,
  userEntryId,
} from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { type HandlerContext, type Implementation, implement } from "@flotilla/worker";
import { untilApplied } from "../adapters/applied-input.ts";

/** Kept back from the caller's deadline, so that our answer and not the caller's time-out is what it sees. */
export const replyReserveMs = 250;

interface Append {
  readonly session_id: string;
  readonly message_id?: string | undefined;
  readonly parent_id?: string | null | undefined;
  readonly messages: readonly (AgentMessage | MessageInput)[];
}

export function treeWriteFunctions(bus: Bus): Implementation[] {
  return [
    implement(sessionCreate, () => ({ session_id: randomUUID() })),
    implement(sessionAppend, async (context, { message, ...rest }) => {
      const [entryId] = await append(bus, context, { ...rest, messages: [message] }, "message");
      return { entry_id: entryId ?? "" };
    }),
    implement(sessionAppendBatch, async (context, request) => ({
      entry_ids: await append(bus, context, request, "messages"),
    })),
  ];
}

async function append(bus: Bus, context: HandlerContext, request: Append, field: string): Promise<string[]> {
  const { session_id: sessionId } = request;
  const messageId = request.message_id ?? randomId();
  const now = Date.now();
  const messages = request.messages.map((message, index) =>
    normaliseMessage(message, now, field === "messages" ? `${field}.${index}` : field),
  );
  const parentId = request.parent_id ?? null;
  if (parentId !== null) await requireEntry(bus, sessionId, parentId);
  const { seq } = await acceptAppend(bus, {
    session_id: sessionId,
    message_id: messageId,
    parent_id: parentId,
    messages,
  });
  const limits = { deadline: context.deadline - replyReserveMs, signal: context.signal };
  const { commit } = await untilApplied(bus, { sessionId, seq, fromSeq: seq + 1 }, limits);
  for (const event of commit.commit.events) {
    if (event.type === "input_rejected" && event.kind === "append" && event.id === messageId) {
      throw new FlotillaError(event.code, event.message);
    }
  }
  return messages.map((_, index) => userEntryId(messageId, index));
}

/** An entry never goes away, so one that is there now is there when the append is applied. */
async function requireEntry(bus: Bus, sessionId: string, entryId: string): Promise<void> {
  const commits = await bus.journal.readCommits(sessionId, 1);
  if (commits.some(({ commit }) => commit.entries.some((entry) => entry.id === entryId))) return;
  throw new FlotillaError("NOT_FOUND", `session ${sessionId} has no entry ${entryId}`, { field: "parent_id" });
}
