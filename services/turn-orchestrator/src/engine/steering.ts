// steering_check: steering first, then follow-ups, then results, then the end; the budget of model calls is checked here.
import type { InboxBody, PendingInput } from "@flotilla/contracts";
import { inboxEntryId } from "@flotilla/contracts";
import { addEntry, type Draft, moveTo, turnOf } from "../domain/draft.ts";
import { addNotice, endStep, finishTurn } from "../domain/finish.ts";
import { nextModelCall } from "../domain/open-turn.ts";
import { nextStart } from "../domain/take-inputs.ts";
import { providerWorker } from "./specs.ts";
import { applyBetweenTurns, remove } from "./step-idle.ts";
import type { Decision, StepContext } from "./types.ts";

export async function steer(
  context: StepContext,
  draft: Draft,
  step: { resultIds: string[]; hasResults: boolean; isTerminated?: boolean },
): Promise<Decision> {
  moveTo(draft, "steering_check");
  endStep(draft, step.resultIds);
  await applyBetweenTurns(context, draft);
  const inbox = chooseInbox(draft);
  const isInterrupted = nextStart(draft.pending)?.interrupts === true;
  if (isInterrupted || step.isTerminated === true) {
    finishTurn(draft, isInterrupted ? "interrupted" : "terminated");
    return { kind: "idle" };
  }
  if (inbox.length === 0 && !step.hasResults) {
    finishTurn(draft, "end");
    return { kind: "idle" };
  }
  const turn = turnOf(draft);
  const limit = turn.request.max_turns;
  if (limit !== null && turn.turn_count >= limit) {
    addNotice(draft, `${turn.turn_id}-max-turns`, `loop stopped: max_turns (${limit}) reached`);
    finishTurn(draft, "max_turns");
    return { kind: "idle" };
  }
  await addInbox(context, draft, inbox);
  nextModelCall(draft, providerWorker(context));
  return { kind: "commit" };
}

/** Steering, or follow-ups when there is none. */
function chooseInbox(draft: Draft): PendingInput[] {
  const steering = draft.pending.filter((item) => item.kind === "steering");
  return steering.length > 0 ? steering : draft.pending.filter((item) => item.kind === "followup");
}

async function addInbox(context: StepContext, draft: Draft, items: readonly PendingInput[]): Promise<void> {
  for (const item of items) {
    const body = (await context.bodyOf(item.seq)).body as InboxBody;
    remove(draft, item);
    for (const [index, message] of body.messages.entries())
      addEntry(draft, inboxEntryId(item.id, item.seq, index), message);
  }
}
