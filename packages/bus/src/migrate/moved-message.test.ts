// The pure part of a move: sequences, messages, and whether a copy is the session.
import type { Commit } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { copiedSoFar, differenceOf } from "./compare-sessions.ts";
import { type JournalMessage, movedCommit, movedMessage } from "./moved-message.ts";
import { SequenceMap } from "./sequence-map.ts";

const map = new SequenceMap();
for (const [from, to] of [
  [10, 101],
  [14, 102],
  [20, 103],
] as const) {
  map.add(from, to);
}
const commit = (fields: Partial<Commit>): Commit =>
  ({
    commit_id: "c",
    session_id: "s1",
    seq_no: 1,
    anchor: 0,
    cursor: 0,
    pending: [],
    state: null,
    ...lists,
    ...fields,
  }) as Commit;
const lists = { entries: [], events: [], ledger: [], timers: [] };
const message = (seq: number, subject: string, body: unknown, headers: [string, string][] = []): JournalMessage => ({
  seq,
  subject,
  headers,
  data: Buffer.from(JSON.stringify(body)),
});

describe("SequenceMap", () => {
  it("knows moved messages exactly, and what everything up to a sequence is", () => {
    expect([9, 10, 15, 20].map((seq) => map.of(seq))).toEqual([null, 101, null, 103]);
    expect([0, 9, 10, 13, 14, 19, 99].map((seq) => map.upTo(seq))).toEqual([0, 0, 101, 101, 102, 102, 103]);
  });
});

describe("movedMessage", () => {
  it("maps anchor, cursor and the waiting inputs of a commit, and nothing else", () => {
    const before = commit({ anchor: 14, cursor: 12, pending: [{ seq: 10, kind: "followup", id: "f" }], at: 14 });
    expect(movedCommit(before, map)).toEqual({
      ...before,
      anchor: 102,
      cursor: 101,
      pending: [{ seq: 101, kind: "followup", id: "f" }],
    });
  });

  it("keeps the bytes and headers of an input, and writes the shard into the subject", () => {
    const input = message(10, "turn.0.s1.in.start.m1", { cursor: 10 }, [["Fl-Digest", "d"]]);
    const moved = movedMessage(input, 2, map);
    expect(moved).toEqual({ subject: "turn.2.s1.in.start.m1", headers: input.headers, data: input.data });
  });

  it("refuses a commit that waits for an input which is not there (I6)", () => {
    const broken = commit({ pending: [{ seq: 11, kind: "start", id: "x" }] });
    expect(() => movedCommit(broken, map)).toThrow("waits for input 11");
  });

  it("names a commit that cannot be read", () => {
    const torn = { ...message(7, "turn.0.s1.c.run", {}), data: Buffer.from("{") };
    expect(() => movedMessage(torn, 1, map)).toThrow("the commit at 7 of turn.0.s1.c.run cannot be read");
  });
});

describe("differenceOf", () => {
  const source = [
    message(10, "turn.0.s1.in.start.m1", { a: 1 }, [["Fl-Digest", "d"]]),
    message(14, "turn.0.s1.c.step", commit({ anchor: 0 }), [["Nats-Msg-Id", "c1"]]),
    message(20, "turn.0.s1.c.idle", commit({ anchor: 14, cursor: 10, seq_no: 2 }), [["Nats-Msg-Id", "c2"]]),
  ];
  const target = [
    message(101, "turn.1.s1.in.start.m1", { a: 1 }, [["Fl-Digest", "d"]]),
    message(102, "turn.1.s1.c.step", commit({ anchor: 0 }), [["Nats-Msg-Id", "c1"]]),
    message(103, "turn.1.s1.c.idle", commit({ anchor: 102, cursor: 101, seq_no: 2 }), [["Nats-Msg-Id", "c2"]]),
  ];

  it("is null for a whole copy", () => {
    expect(differenceOf("s1", source, target, 1)).toBeNull();
  });

  it.each([
    ["a message is missing", target.slice(0, 2), "1 messages are missing"],
    ["there is one more", [...target, message(104, "turn.1.s1.c.run", {})], "it holds 1 messages more"],
    ["an id was lost", [target[0], { ...target[1], headers: [] }, target[2]], "its message at 102"],
    ["a sequence was not mapped", [target[0], target[1], { ...source[2], subject: "turn.1.s1.c.idle" }], "its message"],
  ])("says it when %s", (_, copy, problem) => {
    expect(differenceOf("s1", source, copy as JournalMessage[], 1)).toContain(problem);
  });

  it("takes a beginning of the session for a copy that is not finished", () => {
    const { map: soFar, problem } = copiedSoFar(source, target.slice(0, 1), 1);
    expect(problem).toBeNull();
    expect(soFar.of(10)).toBe(101);
  });
});
