// A session without an open turn: applies waiting appends, opens the next waiting turn, or goes idle.
import type { AppendBody, DrainBody, InboxBody, PendingInput, StartBody } from "@flotilla/contracts";
import { inboxEntryId, userEntryId } from "@flotilla/contracts";
import { addEntry, type Draft } from "../domain/draft.ts";
import { finishTurn } from "../domain/finish.ts";
import {
  nextModelCall,
  openTurn,
  seedFromInbox,
  seedFromStart,
  sessionWithoutTurn,
  type TurnSeed,
} from "../domain/open-turn.ts";
import { type Asked, applyDrain, nextStart, waitingAbort } from "../domain/take-inputs.ts";
import { providerWorker } from "./specs.ts";
import type { Decision, StepContext } from "./types.ts";

export async function stepIdle(context: StepContext, draft: Draft, asked: Asked): Promise<Decision> {
  await applyBetweenTurns(context, draft);
  const seqNo = (context.view.tail?.commit.seq_no ?? 0) + 1;
  const start = nextStart(draft.pending);
  if (start !== null) {
    const body = (await context.bodyOf(start.seq)).body as StartBody;
    remove(draft, start);
    // An append may have used the same message id.
    const isTaken = hasEntry(context, draft, userEntryId(body.message_id, 0));
    openTurn(draft, seedFromStart(body, isTaken ? start.seq : null), seqNo);
    // An abort that overtook the opening of this turn ends it before it costs anything.
    const abort = waitingAbort(draft.pending, start.seq);
    if (abort === null) nextModelCall(draft, providerWorker(context));
    else {
      remove(draft, abort);
      finishTurn(draft, "aborted");
    }
    return { kind: "commit" };
  }
  const woken = asked.isInboxWoken && draft.state !== null ? draft.pending.filter(isInbox) : [];
  const first = woken[0];
  if (first !== undefined && draft.state !== null) {
    const messages = await Promise.all(woken.map((item) => inboxMessages(context, item)));
    for (const item of woken) remove(draft, item);
    openTurn(draft, seedFromInbox(draft.state, first, messages.flat()), seqNo);
    nextModelCall(draft, providerWorker(context));
    return { kind: "commit" };
  }
  return { kind: "idle" };
}

async function inboxMessages(context: StepContext, item: PendingInput): Promise<TurnSeed["messages"]> {
  const { messages } = (await context.bodyOf(item.seq)).body as InboxBody;
  return messages.map((message, index) => ({ entryId: inboxEntryId(item.id, item.seq, index), message }));
}

/** Appends and drains are applied between turns and at steering_check, in the order they came. */
export async function applyBetweenTurns(context: StepContext, draft: Draft): Promise<void> {
  for (const item of draft.pending.filter((candidate) => candidate.kind === "append" || candidate.kind === "drain")) {
    const input = await context.bodyOf(item.seq);
    if (item.kind === "drain") applyDrain(draft, item, input.body as DrainBody);
    else applyAppend(context, draft, item, input.body as AppendBody);
  }
}

function applyAppend(context: StepContext, draft: Draft, item: PendingInput, body: AppendBody): void {
  remove(draft, item);
  if (hasEntry(context, draft, userEntryId(item.id, 0))) {
    const message = `message id ${item.id} is already that of another message`;
    draft.events.push({ type: "input_rejected", kind: "append", id: item.id, code: "MESSAGE_ID_CONFLICT", message });
    return;
  }
  draft.state ??= sessionWithoutTurn(context.view.session_id, item.id, draft.now);
  if (body.parent_id !== null) draft.state.leaf = body.parent_id;
  for (const [index, message] of body.messages.entries()) addEntry(draft, userEntryId(item.id, index), message);
}

function hasEntry({ view }: StepContext, draft: Draft, id: string): boolean {
  return view.byId.has(id) || draft.entries.some((entry) => entry.id === id);
}

export function remove(draft: Draft, item: PendingInput): void {
  draft.pending = draft.pending.filter((candidate) => candidate.seq !== item.seq);
}

function isInbox(item: PendingInput): boolean {
  return item.kind === "steering" || item.kind === "followup";
}
