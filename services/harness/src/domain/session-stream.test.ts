import type {
  AssistantMessage,
  Commit,
  CommitEvent,
  ContentBlock,
  StoredCommit,
  TokenFrame,
  WireEvent,
} from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import {
  aCommit,
  aCompletion,
  aFrame,
  aModelCall,
  anAssistant,
  anEntry,
  aRecord,
  aStateChange,
  aText,
  aTurn,
  at,
  framesOf,
  joined,
  stored,
} from "../../test/builders.ts";
import { comparePositions, parsePosition, startOfSession } from "./position.ts";
import { type SentEvent, SessionStream } from "./session-stream.ts";

const types = (sent: readonly SentEvent[]): string[] => sent.map(({ event }) => event.type);

/** What a client has put together: text by message and block, checked for gaps and overlaps as it grows. */
class Client {
  readonly text = new Map<string, string[]>();
  readonly ids: string[] = [];
  readonly events: WireEvent[] = [];

  take(sent: readonly SentEvent[]): void {
    for (const { id, event } of sent) {
      this.ids.push(id);
      this.events.push(event);
      if (event.type !== "message_update") continue;
      const blocks = this.text.get(event.message_id) ?? [];
      expect(event.offset).toBe((blocks[event.index] ?? "").length);
      blocks[event.index] = (blocks[event.index] ?? "") + event.delta;
      this.text.set(event.message_id, blocks);
    }
  }

  expectOrderedIds(): void {
    const positions = this.ids.map((id) => parsePosition(id));
    for (let i = 1; i < positions.length; i++) {
      const [before, after] = [positions[i - 1], positions[i]];
      if (before !== undefined && after !== undefined) {
        expect(comparePositions(before, after), `${this.ids[i - 1]} before ${this.ids[i]}`).toBeLessThan(0);
      }
    }
  }
}

function asStored(commits: readonly Commit[], firstSeq = 10): StoredCommit[] {
  return commits.map((commit, index) => stored(firstSeq + index * 3, commit));
}

describe("a session's stream", () => {
  const hello = anAssistant([aText("hello world")]);

  it("streams a live turn: frames at once, the rest before message_complete, nothing after it", () => {
    const turn = aTurn({ turnId: "t-1", message: hello, seqNo: 1 });
    const [open, end] = asStored(turn.commits);
    const stream = new SessionStream(startOfSession);
    const client = new Client();
    client.take(stream.apply(open as StoredCommit));
    client.take(stream.frame(aFrame(turn.messageId, 0, 0, 0, "hello")));
    client.take(stream.apply(end as StoredCommit));
    client.take(stream.frame(aFrame(turn.messageId, 1, 0, 5, " world")));
    expect(types(client.ids.map((id, i) => ({ id, event: client.events[i] as WireEvent })))).toEqual([
      "turn_state_changed",
      "turn_state_changed",
      "message_update",
      "message_update",
      "message_complete",
      "turn_end",
      "turn_state_changed",
      "agent_end",
    ]);
    expect(client.text.get(turn.messageId)).toEqual(["hello world"]);
    client.expectOrderedIds();
  });

  it("gives a finished message its whole text on replay", () => {
    const turn = aTurn({ turnId: "t-1", message: hello, seqNo: 1 });
    const stream = new SessionStream(startOfSession);
    const client = new Client();
    for (const commit of asStored(turn.commits)) client.take(stream.apply(commit));
    expect(client.text.get(turn.messageId)).toEqual(["hello world"]);
  });

  it("sends no text for a message whose body was not streamed", () => {
    const turn = aTurn({ turnId: "t-1", message: hello, seqNo: 1, streamed: false });
    const stream = new SessionStream(startOfSession);
    const sent = asStored(turn.commits).flatMap((commit) => stream.apply(commit));
    expect(types(sent)).not.toContain("message_update");
    expect(types(sent)).toContain("message_complete");
  });

  it("keeps frames that come before the commit that opens their message", () => {
    const turn = aTurn({ turnId: "t-1", message: hello, seqNo: 1 });
    const [open] = asStored(turn.commits);
    const stream = new SessionStream(startOfSession);
    expect(stream.frame(aFrame(turn.messageId, 0, 0, 0, "hello"))).toEqual([]);
    expect(stream.isWaiting).toBe(true);
    expect(types(stream.apply(open as StoredCommit)).at(-1)).toBe("message_update");
  });

  it("tells a missed commit from the next one and from one already seen", () => {
    const stream = new SessionStream(startOfSession);
    const [first, second, third] = [1, 2, 3].map((n) => stored(n * 5, aCommit(n)));
    stream.apply(first as StoredCommit);
    expect(stream.order(first as StoredCommit)).toBe("seen");
    expect(stream.order(second as StoredCommit)).toBe("next");
    expect(stream.order(third as StoredCommit)).toBe("gap");
  });

  it("closes a given-up message and streams its successor as another one", () => {
    const state = (id: string) => aRecord({ model_call: aModelCall(id) });
    const stream = new SessionStream(startOfSession);
    const client = new Client();
    client.take(
      stream.apply(stored(5, aCommit(1, { state: state("a1"), events: [aStateChange("assistant_streaming")] }))),
    );
    client.take(stream.frame(aFrame("a1", 0, 0, 0, "half")));
    const aborted = { type: "message_aborted", message_id: "a1", reason: "transient" } as const;
    client.take(stream.apply(stored(9, aCommit(2, { state: state("a2"), events: [aborted] }))));
    client.take(stream.frame(aFrame("a1", 1, 0, 4, " late")));
    client.take(stream.frame(aFrame("a2", 0, 0, 0, "again")));
    expect(client.text).toEqual(
      new Map([
        ["a1", ["half"]],
        ["a2", ["again"]],
      ]),
    );
    client.expectOrderedIds();
  });

  it("opens nothing while a retry waits", () => {
    const waiting = aRecord({ model_call: aModelCall("a2", { retry_at_ms: at + 5000 }) });
    const stream = new SessionStream(startOfSession);
    stream.apply(stored(5, aCommit(1, { state: waiting })));
    expect(stream.openMessageId).toBeNull();
  });

  it("carries the text position in the ids of other events while a message streams", () => {
    const state = aRecord({ model_call: aModelCall("a1") });
    const stream = new SessionStream(startOfSession);
    stream.apply(stored(5, aCommit(1, { state, events: [aStateChange("assistant_streaming")] })));
    stream.frame(aFrame("a1", 0, 0, 0, "half"));
    const rejected = { type: "input_rejected", kind: "steering", id: "x", code: "NO", message: "no" } as const;
    const [event] = stream.apply(stored(8, aCommit(2, { state, events: [rejected] })));
    expect(event?.id).toBe("8.0+a1.0.4");
  });

  it("fills function_execution_end from the ledger and turn_end from entries of earlier commits", () => {
    const result = { content: [{ type: "text" as const, text: "42" }], details: { n: 42 } };
    const ended = {
      type: "function_execution_end",
      function_call_id: "c1",
      function_id: "demo::echo",
      is_error: false,
      duration_ms: 4,
    } as const;
    const outcome = {
      kind: "outcome",
      key: "k",
      call_id: "c1",
      function_id: "demo::echo",
      status: "done",
      result,
      is_error: false,
      duration_ms: 4,
      at,
    } as const;
    const message = {
      role: "function_result",
      function_call_id: "c1",
      function_id: "demo::echo",
      content: result.content,
      details: {},
      is_error: false,
      timestamp: at,
    } as const;
    const stream = new SessionStream(startOfSession);
    stream.apply(stored(4, aCommit(1, { entries: [anEntry("a", hello)], events: [aCompletion("m", "a", false)] })));
    stream.apply(stored(5, aCommit(2, { ledger: [outcome], events: [ended] })));
    const turnEnd: CommitEvent = { type: "turn_end", entry_id: "a", result_entry_ids: ["r"] };
    const sent = stream.apply(
      stored(6, aCommit(3, { entries: [anEntry("r", { ...message })], events: [ended, turnEnd] })),
    );
    expect(sent[0]?.event).toMatchObject({ result: { content: result.content, details: {} } });
    expect(sent[1]?.event).toMatchObject({ message: { role: "assistant" }, function_results: [message] });
  });

  it("names the earlier entries it needs after a resume in mid-step", () => {
    const turnEnd: CommitEvent = { type: "turn_end", entry_id: "a", result_entry_ids: [] };
    const commit = stored(9, aCommit(3, { events: [turnEnd] }));
    const stream = new SessionStream(parsePosition("8.0"));
    expect(stream.needs(commit).entries).toEqual(["a"]);
    stream.remember("a", hello);
    expect(stream.needs(commit).entries).toEqual([]);
  });

  it("shows money in dollars at the edge", () => {
    const turn = aTurn({ turnId: "t-1", message: hello, seqNo: 1 });
    const stream = new SessionStream(startOfSession);
    const sent = asStored(turn.commits).flatMap((commit) => stream.apply(commit));
    const complete = sent.find(({ event }) => event.type === "message_complete")?.event;
    expect(complete).toMatchObject({ message: { usage: { cost_microusd: 13, cost_usd: 0.000013 } } });
  });
});

/** A small deterministic generator, so that a failing case can be run again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

type Step =
  | { kind: "commit"; stored: StoredCommit }
  | { kind: "frame"; frame: TokenFrame }
  | { kind: "chunk"; frames: TokenFrame[] };

/** A turn whose answer streams: frames live, joined frames stored some time later, then the completing commit. */
function aStreamedTurn(message: AssistantMessage, next: () => number): { steps: Step[]; messageId: string } {
  const turn = aTurn({ turnId: "t-1", message, seqNo: 1 });
  const [open, end] = asStored(turn.commits) as [StoredCommit, StoredCommit];
  const frames = framesOf(turn.messageId, message.content, [1, 3, 2, 7]);
  const steps: Step[] = [{ kind: "commit", stored: open }];
  let pending: TokenFrame[] = [];
  for (const frame of frames) {
    steps.push({ kind: "frame", frame });
    pending.push(frame);
    if (next() < 0.3) {
      steps.push({ kind: "chunk", frames: joined(pending) });
      pending = [];
    }
  }
  if (pending.length > 0) steps.push({ kind: "chunk", frames: joined(pending) });
  steps.push({ kind: "commit", stored: end });
  return { steps, messageId: turn.messageId };
}

/** What a replica does for a client that resumes: replay, stored chunks, then live from there on. */
function resume(id: string, done: readonly Step[], client: Client): SessionStream {
  const stream = new SessionStream(parsePosition(id));
  const chunks = done.flatMap((step) => (step.kind === "chunk" ? step.frames : []));
  const from = parsePosition(id).seq;
  for (const step of done) {
    if (step.kind !== "commit" || step.stored.seq < from) continue;
    const deltas = new Map(stream.needs(step.stored).deltas.map((messageId) => [messageId, chunks]));
    client.take(stream.apply(step.stored, deltas));
  }
  if (stream.openMessageId !== null) client.take(stream.chunk(stream.openMessageId, chunks, true));
  return stream;
}

describe("a client that is cut again and again (I10)", () => {
  const content: ContentBlock[] = [
    { type: "thinking", text: "let me think 🤔 about it" },
    aText("Answer: 🚀🚀 naïve café — done."),
    { type: "function_call", id: "c", function_id: "demo::echo", arguments: { text: "a🚀b", n: [1, 2, 3] } },
    aText("tail"),
  ];
  const expected = content.map((block) =>
    block.type === "function_call" ? JSON.stringify(block.arguments) : block.type === "image" ? "" : block.text,
  );

  it.each(Array.from({ length: 60 }, (_, seed) => seed))(
    "has every character once and ordered ids (seed %i)",
    (seed) => {
      const next = random(seed);
      const { steps, messageId } = aStreamedTurn(anAssistant(content), next);
      const client = new Client();
      let stream = new SessionStream(startOfSession);
      let isFresh = true;
      for (const [at, step] of steps.entries()) {
        if (next() < 0.25 || isFresh) {
          stream = resume(client.ids.at(-1) ?? "0", steps.slice(0, at), client);
          isFresh = false;
        }
        if (step.kind === "frame" && next() < 0.1) continue;
        if (step.kind === "frame") client.take(stream.frame(step.frame));
        if (step.kind === "chunk") client.take(stream.chunk(messageId, step.frames, false));
        if (step.kind === "commit") {
          const chunks = steps.slice(0, at).flatMap((earlier) => (earlier.kind === "chunk" ? earlier.frames : []));
          const deltas = new Map(stream.needs(step.stored).deltas.map((id) => [id, chunks]));
          client.take(stream.apply(step.stored, deltas));
        }
      }
      expect(client.text.get(messageId)).toEqual(expected);
      expect(client.events.filter((event) => event.type === "agent_end")).toHaveLength(1);
      client.expectOrderedIds();
    },
  );
});
