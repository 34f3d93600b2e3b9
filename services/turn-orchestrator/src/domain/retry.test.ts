import type { AssistantMessage, OpenModelCall } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { anOpenDraft, aTurn } from "./domain.builders.ts";
import { decideRetry } from "./retry.ts";

const policy = { retries: 3, baseMs: 250, maxMs: 60_000 };

function aFailure(kind: AssistantMessage["error_kind"], retryAfterMs?: number): AssistantMessage {
  return {
    role: "assistant",
    content: [],
    stop_reason: "error",
    error_kind: kind,
    model: "play",
    provider: "scripted",
    timestamp: 0,
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
  };
}

function aCall(fields: Partial<OpenModelCall> = {}): OpenModelCall {
  const call = aTurn(anOpenDraft()).model_call;
  if (call === null) throw new Error("no model call");
  return { ...call, ...fields };
}

describe("retrying a failed model call", () => {
  it.each(["auth_expired", "permanent", "context_overflow"] as const)("never repeats %s", (kind) => {
    expect(decideRetry(aFailure(kind), aCall(), 1, policy, 0.5)).toEqual({ kind: "give_up" });
  });

  it.each(["transient", "rate_limited"] as const)("repeats %s with growing pauses and then gives up", (kind) => {
    const delays = [0, 1, 2].map((retries) => decideRetry(aFailure(kind), aCall({ retries }), 1, policy, 0.5));
    expect(delays).toEqual([250, 500, 1000].map((delayMs) => ({ kind: "retry", delayMs })));
    expect(decideRetry(aFailure(kind), aCall({ retries: 3 }), 1, policy, 0.5)).toEqual({ kind: "give_up" });
  });

  it("waits as long as the vendor asks, and fails over when that is too long", () => {
    expect(decideRetry(aFailure("rate_limited", 7_000), aCall(), 2, policy, 0)).toEqual({
      kind: "retry",
      delayMs: 7_000,
    });
    expect(decideRetry(aFailure("rate_limited", 90_000), aCall(), 2, policy, 0)).toEqual({
      kind: "failover",
      chainIndex: 1,
    });
  });

  it("goes through the chain once and never back (field: BerriAI/litellm#40404)", () => {
    expect(decideRetry(aFailure("permanent"), aCall({ chain_index: 0 }), 2, policy, 0)).toEqual({
      kind: "failover",
      chainIndex: 1,
    });
    expect(decideRetry(aFailure("permanent"), aCall({ chain_index: 1 }), 2, policy, 0)).toEqual({ kind: "give_up" });
  });
});
