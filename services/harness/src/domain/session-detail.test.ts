import type { StoredInput } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { aCommit, aRecord, at, stored } from "../../test/builders.ts";
import { sessionDetail } from "./session-detail.ts";

const aStart = (seq: number): StoredInput => ({
  seq,
  kind: "start",
  id: "m9",
  digest: null,
  body: { turn_id: "t-9", workspace: "one", session_id: "s1", message_id: "m9", messages: [], on_busy: "queue" },
  at,
});

describe("a session's detail", () => {
  it("is provisioning from the accepted input on, before any commit (I1)", () => {
    const detail = sessionDetail("s1", null, [aStart(3)]);
    expect(detail).toMatchObject({
      state: "provisioning",
      turn_id: "t-9",
      workspace: "one",
      turn_count: 0,
      cost_usd: 0,
    });
  });

  it("shows the accepted turn, not the one that ended before it", () => {
    const tail = stored(7, aCommit(4, { state: aRecord({ state: "stopped" }), cursor: 5 }), "idle");
    expect(sessionDetail("s1", tail, [aStart(9)])).toMatchObject({ state: "provisioning", turn_id: "t-9" });
    expect(sessionDetail("s1", tail, [])).toMatchObject({ state: "stopped", turn_id: "t-1" });
  });

  it("shows the running turn while another one is queued", () => {
    const tail = stored(7, aCommit(4, { state: aRecord({ state: "function_execute" }) }));
    expect(sessionDetail("s1", tail, [aStart(9)])).toMatchObject({ state: "function_execute", turn_id: "t-1" });
  });

  it("gives usage and the cost in dollars, and the error of a failed turn", () => {
    const error = { kind: "defect", code: "TURN_INVARIANT", message: "broken" };
    const tail = stored(7, aCommit(4, { state: aRecord({ state: "failed", error }) }), "idle");
    expect(sessionDetail("s1", tail, [])).toMatchObject({
      state: "failed",
      error,
      cost_usd: 0.000013,
      usage: { input: 3, output: 5 },
    });
  });
});
