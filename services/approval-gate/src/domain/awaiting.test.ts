// Waiting calls of a session, their arguments, and the reasons of a refusal.
import { aCommit } from "@flotilla/testkit";
import { describe, expect, it } from "vitest";
import { aDecision, anApprovalRequested, anAssistantEntry, aTurn, digestOf, stored } from "../../test/builders.ts";
import { findArguments } from "./arguments.ts";
import { type AwaitingCall, awaitingCalls, pendingApproval } from "./awaiting.ts";
import { alreadyDecided } from "./refusal.ts";

const onlyCall = (...commits: Parameters<typeof awaitingCalls>[0][]): AwaitingCall => {
  const [call] = awaitingCalls(commits.at(-1) ?? null);
  if (call === undefined) throw new Error("the builder made no waiting call");
  return call;
};

describe("awaitingCalls", () => {
  it("finds none in an unknown, an empty and a finished session", () => {
    expect(awaitingCalls(null)).toEqual([]);
    expect(awaitingCalls(stored(1, aCommit({ session_id: "s1", seq_no: 1, state: null })))).toEqual([]);
    expect(
      awaitingCalls(stored(1, aCommit({ session_id: "s1", seq_no: 1, state: aTurn("s1", [], "stopped") }))),
    ).toEqual([]);
  });

  it("finds the waiting calls of a batch whose siblings still run", () => {
    const state = aTurn(
      "s1",
      [{ id: "c0", status: "running" }, { id: "c1" }, { id: "c2", status: "settled" }, { id: "c3" }],
      "function_execute",
    );
    const calls = awaitingCalls(stored(4, aCommit({ session_id: "s1", seq_no: 4, state }), "run"));
    expect(calls.map((call) => call.id)).toEqual(["c1", "c3"]);
  });
});

describe("findArguments", () => {
  const asked = { id: "c1", args: { order: "A1", amount: 5 } };
  const parked = stored(9, aCommit({ session_id: "s1", seq_no: 3, state: aTurn("s1", [asked]) }));

  it("takes those of the event that asked, which are the ones that will run", () => {
    const changedByHook = { id: "c1", args: { order: "A1", amount: 3 } };
    const commit = stored(
      5,
      aCommit({
        session_id: "s1",
        seq_no: 2,
        entries: [anAssistantEntry([asked])],
        events: [anApprovalRequested(changedByHook)],
      }),
    );
    const call = onlyCall(stored(9, aCommit({ session_id: "s1", seq_no: 3, state: aTurn("s1", [changedByHook]) })));
    expect(findArguments([commit, parked], call)).toEqual({ args: { order: "A1", amount: 3 } });
  });

  it("falls back to the model's call", () => {
    const commit = stored(5, aCommit({ session_id: "s1", seq_no: 2, entries: [anAssistantEntry([asked])] }));
    expect(findArguments([commit, parked], onlyCall(parked))).toEqual({ args: { order: "A1", amount: 5 } });
  });

  it("never gives arguments with another digest than the call's", () => {
    const other = { id: "c1", args: { order: "A1", amount: 5_000 } };
    const commit = stored(
      5,
      aCommit({
        session_id: "s1",
        seq_no: 2,
        entries: [anAssistantEntry([other])],
        events: [anApprovalRequested(other)],
      }),
    );
    expect(findArguments([commit, parked], onlyCall(parked))).toBeNull();
  });
});

it("shows a pending approval with its reason only when there is one", () => {
  const asked = { id: "c1", createdAt: 7, expiresAt: 8 };
  const base = {
    session_id: "s1",
    function_call_id: "c1",
    function_id: "demo::refund",
    args: { order: "c1" },
    args_digest: digestOf(asked),
    created_at: 7,
    expires_at: 8,
  };
  const at = (reason?: string) =>
    onlyCall(
      stored(
        1,
        aCommit({ session_id: "s1", seq_no: 1, state: aTurn("s1", [{ ...asked, ...(reason ? { reason } : {}) }]) }),
      ),
    );
  expect(pendingApproval("s1", at(), { order: "c1" })).toEqual(base);
  expect(pendingApproval("s1", at("moves money"), { order: "c1" })).toEqual({ ...base, reason: "moves money" });
});

it.each([
  ["allow", "APPROVAL_DECIDED"],
  ["deny", "APPROVAL_DECIDED"],
  ["expired", "APPROVAL_EXPIRED"],
  ["aborted", "APPROVAL_REVOKED"],
] as const)(
  "refuses a decision about a call that is already %s with %s (409) and says what was decided",
  (how, code) => {
    const error = alreadyDecided(aDecision(how));
    expect(error).toMatchObject({
      code,
      httpStatus: 409,
      details: { decision: how, decided_by: "client", decided_at: 5_000 },
    });
  },
);
