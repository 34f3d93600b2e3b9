import { argumentsDigest, type CallRecord } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { aCommit, anAssistant, aRecord, at } from "../../test/builders.ts";
import { FakeJournal } from "../../test/fake-journal.ts";
import { createSessions } from "./journal-sessions.ts";

const args = { order: "1", amount: 2 };

describe("a session that waits for a person", () => {
  it("names the parked calls with their arguments", async () => {
    const digest = argumentsDigest("demo::refund", args);
    const call: CallRecord = {
      id: "c1",
      index: 0,
      function_id: "demo::refund",
      args_digest: digest,
      status: "awaiting",
      attempt: 1,
      approval: { created_at: at, expires_at: at + 1000 },
    };
    const journal = new FakeJournal();
    const message = anAssistant([{ type: "function_call", id: "c1", function_id: "demo::refund", arguments: args }]);
    const state = aRecord({ state: "function_awaiting_approval", calls: [call], assistant_entry_id: "a1" });
    journal.append(
      aCommit(1, { state, entries: [{ type: "message", id: "a1", parent_id: null, message, timestamp: at }] }),
    );
    const detail = await createSessions(journal.bus()).detail("s1");
    expect(detail.awaiting_approval).toEqual([
      {
        function_call_id: "c1",
        function_id: "demo::refund",
        args,
        args_digest: digest,
        created_at: at,
        expires_at: at + 1000,
      },
    ]);
  });
});
