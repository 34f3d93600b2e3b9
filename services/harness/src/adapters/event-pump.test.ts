import type { Commit } from "@flotilla/contracts";
import { until } from "@flotilla/testkit";
import { afterEach, describe, expect, it } from "vitest";
import { aFrame, anAssistant, aText, aTurn, framesOf, joined } from "../../test/builders.ts";
import { FakeJournal, RecordingSink } from "../../test/fake-journal.ts";
import { parsePosition } from "../domain/position.ts";
import type { Pump } from "../ports.ts";
import { createEventSource } from "./event-pump.ts";

const pumps: Pump[] = [];
afterEach(() => {
  for (const pump of pumps.splice(0)) pump.stop();
});

const turn = aTurn({ turnId: "t-1", message: anAssistant([aText("hello world")]), seqNo: 1 });
const [opening, ending] = turn.commits as [Commit, Commit];
const next = aTurn({ turnId: "t-2", message: anAssistant([aText("again")]), seqNo: 3, parent: turn.entryId });

function start(
  journal: FakeJournal,
  options: { from?: string; heartbeatMs?: number; bufferBytes?: number } = {},
): RecordingSink {
  const sink = new RecordingSink();
  const { heartbeatMs = 60_000, bufferBytes = 1_000_000 } = options;
  const source = createEventSource(journal.bus(), { heartbeatMs, bufferBytes });
  pumps.push(source.open("s1", options.from === undefined ? null : parsePosition(options.from), sink));
  return sink;
}

const ends = (sink: RecordingSink): number => sink.types.filter((type) => type === "agent_end").length;

describe("the event pump", () => {
  it("reads the journal again when a notice was lost, and sends nothing twice", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    const sink = start(journal);
    await until(() => sink.types.length === 3, { what: "snapshot and two states" });
    journal.append(ending, { isNoticed: false });
    for (const commit of next.commits) journal.append(commit);
    await until(() => ends(sink) === 2, { what: "both turns" });
    expect(sink.textOf(turn.messageId)).toBe("hello world");
    expect(new Set(sink.sent.map(({ id }) => id)).size).toBe(sink.sent.length);
  });

  it("asks again while a read is behind the leader", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    journal.behind = 1;
    const sink = start(journal);
    journal.append(ending, { isNoticed: false });
    await until(() => journal.reads.length >= 3, { what: "some reads that show too little" });
    expect(ends(sink)).toBe(0);
    journal.behind = 0;
    await until(() => ends(sink) === 1, { what: "the end of the turn" });
  });

  it("finds what it was not told about at the next heartbeat", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    const sink = start(journal, { heartbeatMs: 100 });
    await until(() => sink.types.length === 3, { what: "the replay" });
    journal.append(ending, { isNoticed: false });
    await until(() => ends(sink) === 1, { what: "the end of the turn" });
  });

  it("reads commits and stored chunks again after a reconnect", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    const sink = start(journal);
    await until(() => sink.types.length === 3, { what: "the replay" });
    const frames = framesOf(turn.messageId, [aText("hello world")], [6]);
    journal.deltas.set(turn.messageId, joined(frames));
    journal.reconnect();
    await until(() => sink.textOf(turn.messageId) === "hello world", { what: "the text stored meanwhile" });
    journal.append(ending, { isNoticed: false });
    journal.reconnect();
    await until(() => ends(sink) === 1, { what: "the end of the turn" });
  });

  it("closes the gap before a held frame from the store when no chunk is announced", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    const sink = start(journal);
    await until(() => sink.types.length === 3, { what: "the replay" });
    journal.deltas.set(turn.messageId, [aFrame(turn.messageId, 0, 0, 0, "hello ")]);
    journal.frame("s1", aFrame(turn.messageId, 1, 0, 6, "world"));
    await until(() => sink.textOf(turn.messageId) === "hello world", { what: "the whole text" });
  });

  it("ignores frames that are malformed", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    const sink = start(journal);
    await until(() => sink.types.length === 3, { what: "the replay" });
    for (const frame of [null, {}, { ...aFrame(turn.messageId, 0, 0, 0, "x"), offset: -1 }]) journal.frame("s1", frame);
    journal.frame("s1", aFrame(turn.messageId, 0, 0, 0, "good"));
    await until(() => sink.textOf(turn.messageId) === "good", { what: "the good frame" });
    expect(sink.failure).toBeNull();
  });

  it("sends a snapshot when the part after the position was deleted", async () => {
    const journal = new FakeJournal();
    for (const commit of next.commits) journal.append(commit, { skip: 10 });
    const sink = start(journal, { from: "3.0" });
    await until(() => ends(sink) === 1, { what: "the newest turn" });
    expect(sink.types[0]).toBe("snapshot");
  });

  it("ends a sink that does not keep up", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    const sink = start(journal, { bufferBytes: 20_000 });
    await until(() => sink.types.length === 3, { what: "the replay" });
    sink.gate = new Promise(() => {});
    for (let n = 0; n < 40; n++) journal.frame("s1", aFrame(turn.messageId, n, 0, n * 1000, "x".repeat(1000)));
    await until(() => sink.failure !== null, { what: "the sink is ended" });
    expect(sink.failure).toContain("too slow");
  });

  it("lets one large burst pass", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    const sink = start(journal, { bufferBytes: 20_000 });
    await until(() => sink.types.length === 3, { what: "the replay" });
    for (let n = 0; n < 40; n++) journal.frame("s1", aFrame(turn.messageId, n, 0, n * 1000, "x".repeat(1000)));
    await until(() => sink.textOf(turn.messageId).length === 40_000, { what: "the whole text" });
    expect(sink.failure).toBeNull();
  });

  it("ends the sink when the journal cannot be read, so that its reader comes back", async () => {
    const journal = new FakeJournal();
    journal.append(opening);
    journal.isFailing = true;
    const sink = start(journal);
    await until(() => sink.failure !== null, { what: "the sink is ended" });
    expect(sink.sent).toEqual([]);
  });
});
