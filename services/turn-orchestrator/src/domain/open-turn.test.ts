import { describe, expect, it } from "vitest";
import { anOpenDraft, aTurn } from "./domain.builders.ts";
import { intendModelCall } from "./open-turn.ts";

describe("opening a turn", () => {
  it("records the intent of its first model call before anything is sent (I4)", () => {
    const draft = anOpenDraft();
    const turn = aTurn(draft);
    expect(turn.state).toBe("assistant_streaming");
    expect(turn.model_call?.key).toBe("provider-scripted.s1.t-1.1.m0.1");
    expect(draft.ledger).toEqual([expect.objectContaining({ kind: "intent", key: turn.model_call?.key })]);
  });

  it("chains its user messages to the leaf and announces its states in order", () => {
    const draft = anOpenDraft();
    expect(draft.entries.map((entry) => [entry.id, entry.parent_id])).toEqual([["m1-user-0", null]]);
    const states = draft.events.flatMap((event) =>
      event.type === "turn_state_changed" ? [event.new_value.state] : [],
    );
    expect(states).toEqual(["provisioning", "assistant_streaming"]);
  });

  it("gives a repeated attempt a new key and a new message id, and the next model of the chain its own worker", () => {
    const draft = anOpenDraft({ fallback: [{ provider: "openai", model: "gpt" }] });
    intendModelCall(draft, (provider) => `provider-${provider}`, { attempt: 2, retries: 0, chainIndex: 1 });
    expect(aTurn(draft).model_call).toMatchObject({
      key: "provider-openai.s1.t-1.1.m0.2",
      message_id: "t-1-1-2",
      model: "gpt",
    });
  });
});
