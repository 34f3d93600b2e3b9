// Builders for tests of the pure domain.
import {
  emptyView,
  type InputKind,
  type SessionView,
  type StoredInput,
  type TurnRecord,
  type TurnRequest,
} from "@flotilla/contracts";
import { type Draft, draftFrom } from "./draft.ts";
import { nextModelCall, openTurn } from "./open-turn.ts";

export function aRequest(fields: Partial<TurnRequest> = {}): TurnRequest {
  return {
    provider: "scripted",
    model: "play",
    fallback: [],
    mode: null,
    system_prompt: "",
    functions: [],
    max_turns: null,
    approval_ttl_ms: 60_000,
    thinking_level: null,
    ...fields,
  };
}

export function aView(): SessionView {
  return emptyView("s1");
}

export function anOpenDraft(fields: Partial<TurnRequest> = {}): Draft {
  const draft = draftFrom(aView(), 1_000);
  openTurn(
    draft,
    {
      session_id: "s1",
      workspace: "default",
      turn_id: "t-1",
      message_id: "m1",
      request: aRequest(fields),
      traceparent: null,
      messages: [
        { entryId: "m1-user-0", message: { role: "user", content: [{ type: "text", text: "hi" }], timestamp: 1 } },
      ],
    },
    1,
  );
  nextModelCall(draft, (provider) => `provider-${provider}`);
  return draft;
}

export function anInput(seq: number, kind: InputKind, body: unknown, id = `i${seq}`): StoredInput {
  return { seq, kind, id, digest: null, body, at: 0 };
}

export function aTurn(draft: Draft): TurnRecord {
  if (draft.state === null) throw new Error("the draft has no turn");
  return draft.state;
}
