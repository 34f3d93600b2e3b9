import type { StoredInput } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { aCommit, anAssistant, aText, aTurn, at, stored } from "../../test/builders.ts";
import { newestTurn } from "./newest-turn.ts";
import { startOfSession } from "./position.ts";

const first = aTurn({ turnId: "t-1", message: anAssistant([aText("one")]), seqNo: 1 });
const second = aTurn({ turnId: "t-2", message: anAssistant([aText("two")]), seqNo: 3, parent: first.entryId });
const commits = [...first.commits, ...second.commits].map((commit, index) => stored(10 + index, commit));

const aStart = (seq: number): StoredInput => ({ seq, kind: "start", id: "m9", digest: null, body: {}, at });

describe("the newest turn", () => {
  it("begins at the first commit of its turn id; the snapshot holds what was before", () => {
    const split = newestTurn("s1", commits, []);
    expect(split.snapshot.messages.map(({ entry_id }) => entry_id)).toEqual(["u-t-1", first.entryId]);
    expect(split.snapshot.state).toMatchObject({ state: "stopped", turn_id: "t-1", usage: { cost_usd: 0.000013 } });
    expect(split.position).toEqual({ seq: 11, index: 3, text: null });
    expect(split.commits.map(({ seq }) => seq)).toEqual([11, 12, 13]);
  });

  it("has an empty snapshot in a session's first turn", () => {
    const split = newestTurn("s1", commits.slice(0, 2), []);
    expect(split.snapshot).toEqual({ type: "snapshot", state: null, messages: [] });
    expect(split.position).toEqual(startOfSession);
  });

  it("is the one that was accepted, not the one that ended before it: nothing of the old turn is sent", () => {
    const split = newestTurn("s1", commits, [aStart(20)]);
    expect(split.snapshot.messages.map(({ entry_id }) => entry_id)).toEqual([
      "u-t-1",
      first.entryId,
      "u-t-2",
      second.entryId,
    ]);
    expect(split.snapshot.state).toMatchObject({ state: "stopped", turn_id: "t-2" });
    expect(split.position).toEqual({ seq: 13, index: 3, text: null });
    expect(split.commits.map(({ seq }) => seq)).toEqual([13]);
  });

  it("is the running one while another start waits for its end", () => {
    const running = commits.slice(0, 3);
    expect(newestTurn("s1", running, [aStart(20)]).commits.map(({ seq }) => seq)).toEqual([11, 12]);
  });

  it("is empty when the session has only been woken", () => {
    const wake = stored(3, aCommit(1, { state: null }), "step");
    const split = newestTurn("s1", [wake], []);
    expect(split.snapshot.state).toBeNull();
    expect(split.commits).toEqual([wake]);
  });
});
