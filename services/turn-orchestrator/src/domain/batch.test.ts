import type { AssistantMessage } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { closeBatch, intendCall, nextSequential, planCalls, settleCall } from "./batch.ts";
import { anOpenDraft, aTurn, aView } from "./domain.builders.ts";
import type { Draft } from "./draft.ts";
import { answered, outcomeUnknown } from "./results.ts";

const fn = {
  id: "demo::echo",
  request_schema: {},
  response_schema: {},
  replay: "safe" as const,
  timeout_ms: 1000,
  execution: "parallel" as const,
  agent_visible: true,
  description: "",
};

function aMessage(...calls: { function_id: string; arguments: unknown }[]): AssistantMessage {
  const content = calls.map((call, index) => ({ type: "function_call" as const, id: `vendor-${index}`, ...call }));
  return {
    role: "assistant",
    content,
    stop_reason: "function_call",
    model: "play",
    provider: "scripted",
    timestamp: 0,
  };
}

function aBatch(count: number): Draft {
  const draft = anOpenDraft();
  aTurn(draft).calls = Array.from({ length: count }, (_, index) => ({
    id: `t-1-1-${index}`,
    index,
    function_id: "demo::echo",
    args_digest: "sha256:x",
    status: "ready" as const,
    attempt: 1,
  }));
  for (const call of aTurn(draft).calls) intendCall(draft, call, { worker: "demo", fn });
  return draft;
}

describe("a batch of tool calls", () => {
  it("gets our ids and keeps the vendor's beside them", () => {
    const { message, calls } = planCalls(aMessage({ function_id: "demo::echo", arguments: { a: 1 } }), "t-1", 2);
    expect(calls).toEqual([{ id: "t-1-2-0", index: 0, functionId: "demo::echo", args: { a: 1 }, isMissing: false }]);
    expect(message.content[0]).toMatchObject({ id: "t-1-2-0", provider_call_id: "vendor-0" });
  });

  it("unwraps the generic tool, so that transcript and events hold the real id", () => {
    const { message, calls } = planCalls(
      aMessage({ function_id: "agent_trigger", arguments: { function: "demo::lookup", payload: { order: "A1" } } }),
      "t",
      1,
    );
    expect(calls[0]).toMatchObject({ functionId: "demo::lookup", args: { order: "A1" } });
    expect(message.content[0]).toMatchObject({ function_id: "demo::lookup" });
    expect(planCalls(aMessage({ function_id: "agent_trigger", arguments: {} }), "t", 1).calls[0]?.isMissing).toBe(true);
  });

  it("closes with exactly one result per call, in the model's order, whatever order they settled in (I5)", () => {
    const draft = aBatch(3);
    const [a, b, c] = aTurn(draft).calls;
    if (a === undefined || b === undefined || c === undefined) throw new Error("three calls");
    settleCall(draft, c, answered("third"));
    settleCall(draft, a, answered("first"));
    settleCall(draft, b, outcomeUnknown("demo::echo"));
    const { resultIds } = closeBatch(draft, aView());
    expect(resultIds).toEqual(["fr-t-1-1-0", "fr-t-1-1-1", "fr-t-1-1-2"]);
    const results = draft.entries.flatMap((entry) => (entry.message.role === "function_result" ? [entry.message] : []));
    expect(results.map((result) => [result.function_call_id, result.is_error])).toEqual([
      ["t-1-1-0", false],
      ["t-1-1-1", true],
      ["t-1-1-2", false],
    ]);
    expect(JSON.stringify(results[1]?.content)).toContain("unknown");
  });

  it("refuses to settle a call twice or to close with a call open", () => {
    const draft = aBatch(1);
    expect(() => closeBatch(draft, aView())).toThrow(/no outcome/);
    const [call] = aTurn(draft).calls;
    if (call === undefined) throw new Error("one call");
    settleCall(draft, call, answered(1));
    expect(() => settleCall(draft, call, answered(2))).toThrow(/twice/);
  });

  it("runs sequential functions one at a time, in order", () => {
    const draft = aBatch(3);
    const { calls } = aTurn(draft);
    for (const call of calls) Object.assign(call, { status: "ready", execution: "sequential" });
    expect(nextSequential(calls)?.index).toBe(0);
    Object.assign(calls[0] ?? {}, { status: "running" });
    expect(nextSequential(calls)).toBeNull();
  });
});
