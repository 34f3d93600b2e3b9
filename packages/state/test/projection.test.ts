// The projection of single commits, without Redis.
import type { AssistantMessage, StoredCommit } from "@flotilla/contracts";
import { aCommit, aTurnRecord, awaitingCall, userEntry } from "@flotilla/testkit";
import { describe, expect, it } from "vitest";
import { projectionOf } from "../src/index.ts";

const sid = "s-1";
const stored = (commit: StoredCommit["commit"], kind: StoredCommit["kind"] = "run"): StoredCommit => ({
  seq: 7,
  kind,
  commit,
});

describe("projectionOf", () => {
  it("takes the session's row from the turn record", () => {
    const state = aTurnRecord({
      session_id: sid,
      workspace: "w",
      state: "function_execute",
      turn_id: "t-9",
      turn_count: 3,
      entry_count: 4,
      updated_at_ms: 99,
      usage: { cost_microusd: 1_500_000 },
    });
    const write = projectionOf(stored(aCommit({ session_id: sid, workspace: "w", state })));
    expect(write).toMatchObject({ seq: 7, sessionId: sid, workspace: "w" });
    expect(write.row).toEqual({
      session_id: sid,
      state: "function_execute",
      turn_id: "t-9",
      turn_count: 3,
      updated_at: 99,
      workspace: "w",
      entry_count: 4,
      cost_usd: 1.5,
    });
  });

  it("shows a session whose first turn has not opened as provisioning, and an idle one as stopped", () => {
    const commit = aCommit({ session_id: sid, state: null, at: 5 });
    expect(projectionOf(stored(commit, "step")).row).toMatchObject({ state: "provisioning", updated_at: 5 });
    expect(projectionOf(stored(commit, "idle")).row.state).toBe("stopped");
  });

  it("summarises the newest entry in 80 characters and cuts no surrogate pair", () => {
    const text = `${"x".repeat(79)}😀😀`;
    const write = projectionOf(stored(aCommit({ session_id: sid, entries: [userEntry("e1", text)] })));
    expect(write.summary).toBe(`${"x".repeat(79)}😀`);
  });

  it("leaves the summary alone without entries and empties it for a function result", () => {
    expect(projectionOf(stored(aCommit({ session_id: sid }))).summary).toBeUndefined();
    const result = {
      role: "function_result",
      function_call_id: "c",
      function_id: "f::x",
      content: [{ type: "text", text: "ok" }],
      details: null,
      is_error: false,
      timestamp: 1,
    } as const;
    const entry = { ...userEntry("e1", ""), message: { ...result, content: [...result.content] } };
    expect(projectionOf(stored(aCommit({ session_id: sid, entries: [entry] }))).summary).toBeNull();
  });

  it("takes an approval's arguments from its request event", () => {
    const { call, event } = awaitingCall("c-1", { order: 7, empty: [] });
    const state = aTurnRecord({ session_id: sid, state: "function_awaiting_approval", calls: [call] });
    const write = projectionOf(stored(aCommit({ session_id: sid, state, events: [event] })));
    expect(write.awaiting).toEqual(["c-1"]);
    expect(write.requested).toEqual([
      {
        session_id: sid,
        function_call_id: "c-1",
        function_id: "demo::refund",
        args: { order: 7, empty: [] },
        args_digest: "sha256:c-1",
        created_at: 1,
        expires_at: 60_001,
      },
    ]);
  });

  it("takes an approval's arguments from the assistant entry of the same commit when no event has them", () => {
    const { call } = awaitingCall("c-1", null);
    const block = { type: "function_call", id: "c-1", function_id: "demo::refund", arguments: { order: 8 } } as const;
    const message: AssistantMessage = {
      role: "assistant",
      content: [block],
      stop_reason: "function_call",
      model: "play",
      provider: "scripted",
      timestamp: 1,
    };
    const state = aTurnRecord({ session_id: sid, calls: [call] });
    const entries = [{ ...userEntry("a-1", ""), message }];
    const write = projectionOf(stored(aCommit({ session_id: sid, state, entries })));
    expect(write.requested).toMatchObject([{ function_call_id: "c-1", args: { order: 8 } }]);
  });

  it("names a waiting call whose arguments came with an earlier commit without a row of its own", () => {
    const { call } = awaitingCall("c-1", null);
    const write = projectionOf(
      stored(aCommit({ session_id: sid, state: aTurnRecord({ session_id: sid, calls: [call] }) })),
    );
    expect(write.awaiting).toEqual(["c-1"]);
    expect(write.requested).toEqual([]);
  });
});
