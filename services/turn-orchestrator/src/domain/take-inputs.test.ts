import { describe, expect, it } from "vitest";
import { anInput, anOpenDraft, aTurn, aView } from "./domain.builders.ts";
import { draftFrom } from "./draft.ts";
import { finishTurn } from "./finish.ts";
import { applyDrain, takeInputs, waitingAbort } from "./take-inputs.ts";

const aStart = (seq: number, onBusy: string) =>
  anInput(seq, "start", {
    session_id: "s1",
    turn_id: "t-9",
    message_id: "m9",
    request: {},
    messages: [],
    on_busy: onBusy,
  });

describe("taking inputs", () => {
  it("takes each input once and moves the cursor over all of them (I6)", () => {
    const draft = draftFrom(aView(), 0);
    const start = aStart(3, "queue");
    takeInputs(draft, [start]);
    takeInputs(draft, [start, anInput(5, "wake", {})]);
    expect(draft.cursor).toBe(5);
    expect(draft.pending).toEqual([{ seq: 3, kind: "start", id: "i3" }]);
  });

  it("asks for an abort only when it means the turn that runs", () => {
    const draft = anOpenDraft();
    expect(takeInputs(draft, [anInput(1, "abort", { turn_id: "t-other", reason: null })]).abort).toBeNull();
    expect(draft.events.at(-1)).toMatchObject({ type: "input_rejected", kind: "abort", code: "SESSION_IDLE" });
    expect(takeInputs(draft, [anInput(2, "abort", { turn_id: "t-1", reason: "stop" })]).abort).toEqual({
      reason: "stop",
    });
  });

  it("keeps an abort that overtook the opening of its turn", () => {
    const draft = draftFrom(aView(), 0);
    takeInputs(draft, [aStart(1, "reject"), anInput(2, "abort", { turn_id: null, reason: null })]);
    expect(waitingAbort(draft.pending, 1)).toMatchObject({ seq: 2 });
  });

  it("gives a message that came after the end of its turn a turn of its own instead of losing it (I6)", () => {
    const draft = anOpenDraft();
    finishTurn(draft, "end");
    expect(takeInputs(draft, [anInput(9, "steering", { messages: [] })]).isInboxWoken).toBe(true);
  });

  it("refuses a decision that names no waiting call or another digest, visibly", () => {
    const draft = anOpenDraft();
    const turn = aTurn(draft);
    turn.calls = [
      { id: "t-1-1-0", index: 0, function_id: "demo::refund", args_digest: "sha256:a", status: "awaiting", attempt: 1 },
    ];
    const body = {
      function_call_id: "t-1-1-0",
      args_digest: "sha256:b",
      decision: "allow",
      reason: null,
      decided_by: "x",
    };
    expect(takeInputs(draft, [anInput(1, "approval", body)]).decisions).toEqual([]);
    expect(takeInputs(draft, [anInput(2, "approval", { ...body, args_digest: "sha256:a" })]).decisions).toHaveLength(1);
  });

  it("drains only what came before the drain and only that inbox", () => {
    const draft = anOpenDraft();
    takeInputs(draft, [
      anInput(1, "steering", { messages: [] }),
      anInput(2, "followup", { messages: [] }),
      anInput(3, "drain", { name: "steering" }),
      anInput(4, "steering", { messages: [] }),
    ]);
    const drain = draft.pending.find((item) => item.kind === "drain");
    if (drain === undefined) throw new Error("no drain is pending");
    applyDrain(draft, drain, { name: "steering" });
    expect(draft.pending.map((item) => item.seq)).toEqual([2, 4]);
  });
});
