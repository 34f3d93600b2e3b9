// The event stream on real NATS, with hand-written commits and frames in the place of an orchestrator and a provider.
import type { Bus } from "@flotilla/bus";
import { type AssistantMessage, type Commit, type ContentBlock, subjects, type TokenFrame } from "@flotilla/contracts";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { aCommit, aModelCall, anAssistant, aRecord, aStateChange, aText, aTurn, framesOf, joined } from "./builders.ts";
import { SseClient } from "./sse-client.ts";
import { Committer, connectAs, startHarness, type TestHarness } from "./support.ts";

let nats: StartedNats;
let operator: Bus;
let one: TestHarness;
let two: TestHarness;
const clients: SseClient[] = [];
let sessions = 0;

beforeAll(async () => {
  nats = await startNats();
  operator = await connectAs(nats, "operator");
  one = await startHarness(nats, { FLOTILLA_SSE_HEARTBEAT_MS: "300" });
  two = await startHarness(nats);
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.disconnect()));
});
afterAll(async () => {
  await one.stop();
  await two.stop();
  await operator.close();
  await nats.stop();
});

function freshSession(): { sid: string; committer: Committer } {
  const sid = `events-${++sessions}`;
  return { sid, committer: new Committer(operator, sid) };
}

function aClient(sid: string, harness = one): SseClient {
  const client = new SseClient(`${harness.url}/v1/sessions/${sid}/events`);
  clients.push(client);
  return client;
}

async function stream(sid: string, frames: readonly TokenFrame[]): Promise<void> {
  for (const frame of frames) operator.nc.publish(subjects.tokens(sid), JSON.stringify(frame));
  await operator.nc.flush();
}

async function commitTurn(committer: Committer, turn: { commits: Commit[] }): Promise<void> {
  for (const commit of turn.commits) await committer.commit(commit, commit === turn.commits.at(-1) ? "idle" : "run");
}

const content: ContentBlock[] = [
  { type: "thinking", text: "counting 🤔" },
  aText("one two three 🚀🚀 four — five"),
  { type: "function_call", id: "c1", function_id: "demo::echo", arguments: { text: "hi 🚀" } },
  aText("six"),
];
const expected = content.map((part) => {
  if (part.type === "function_call") return JSON.stringify(part.arguments);
  return part.type === "image" ? "" : part.text;
});

describe("GET /v1/sessions/{sid}/events", () => {
  it("starts with a snapshot of what was before the newest turn, then that turn, then goes on live", async () => {
    const { sid, committer } = freshSession();
    const first = aTurn({ turnId: "t-a", message: anAssistant([aText("first")]), seqNo: 1, sessionId: sid });
    const second = aTurn({
      turnId: "t-b",
      message: anAssistant([aText("second")]),
      seqNo: 3,
      sessionId: sid,
      parent: first.entryId,
    });
    await commitTurn(committer, first);
    await commitTurn(committer, second);
    const client = aClient(sid);
    await client.connect();
    await client.seen("agent_end");
    expect(client.types()[0]).toBe("snapshot");
    expect(client.received[0]?.event).toMatchObject({ messages: [{ entry_id: "u-t-a" }, { entry_id: first.entryId }] });
    expect(client.textOf(second.messageId)).toBe("second");
    expect(client.text.has(first.messageId)).toBe(false);
    const third = aTurn({
      turnId: "t-c",
      message: anAssistant([aText("third")]),
      seqNo: 5,
      sessionId: sid,
      parent: second.entryId,
    });
    await commitTurn(committer, third);
    await client.until(
      () => client.types().filter((type) => type === "agent_end").length === 2,
      "the third turn, on an open stream",
    );
    expect(client.isOpen).toBe(true);
  });

  it("gives the whole session from Last-Event-ID 0, without a snapshot, and by query for browsers", async () => {
    const { sid, committer } = freshSession();
    const first = aTurn({ turnId: "t-a", message: anAssistant([aText("first")]), seqNo: 1, sessionId: sid });
    const second = aTurn({ turnId: "t-b", message: anAssistant([aText("second")]), seqNo: 3, sessionId: sid });
    await commitTurn(committer, first);
    await commitTurn(committer, second);
    const byHeader = aClient(sid);
    await byHeader.connect({ lastEventId: "0" });
    const byQuery = new SseClient(`${one.url}/v1/sessions/${sid}/events?last_event_id=0`);
    clients.push(byQuery);
    await byQuery.connect();
    for (const client of [byHeader, byQuery]) {
      await client.until(() => client.types().filter((type) => type === "agent_end").length === 2, "both turns");
      expect(client.types()).not.toContain("snapshot");
      expect(client.textOf(first.messageId)).toBe("first");
      expect(client.textOf(second.messageId)).toBe("second");
    }
  });

  it("passes frames on before they are stored or committed", async () => {
    const { sid, committer } = freshSession();
    const turn = aTurn({ turnId: "t-a", message: anAssistant([aText("hello")]), seqNo: 1, sessionId: sid });
    await committer.commit(turn.commits[0] as Commit);
    const client = aClient(sid);
    await client.connect();
    await client.seen("turn_state_changed");
    await stream(sid, framesOf(turn.messageId, [aText("hel")], [1]));
    await client.until(() => client.textOf(turn.messageId) === "hel", "the first frames");
    expect(client.types()).not.toContain("message_complete");
    await committer.commit(turn.commits[1] as Commit, "idle");
    await client.seen("agent_end");
    expect(client.textOf(turn.messageId)).toBe("hello");
  });

  it("holds a frame beyond a lost one until the stored chunk closes the gap", async () => {
    const { sid, committer } = freshSession();
    const turn = aTurn({ turnId: "t-a", message: anAssistant([aText("abcdef")]), seqNo: 1, sessionId: sid });
    await committer.commit(turn.commits[0] as Commit);
    const client = aClient(sid);
    await client.connect();
    await client.seen("turn_state_changed");
    const frames = framesOf(turn.messageId, [aText("abcdef")], [2]);
    await stream(sid, [frames[0] as TokenFrame, frames[2] as TokenFrame]);
    await client.until(() => client.textOf(turn.messageId) === "ab", "the text before the gap");
    await operator.deltas.append(sid, turn.messageId, joined(frames.slice(0, 2)));
    await client.until(() => client.textOf(turn.messageId) === "abcdef", "the text after the gap");
  });

  it("sends a snapshot for a position beyond the journal", async () => {
    const { sid, committer } = freshSession();
    await commitTurn(committer, aTurn({ turnId: "t-a", message: anAssistant([aText("x")]), seqNo: 1, sessionId: sid }));
    const client = aClient(sid);
    await client.connect({ lastEventId: "999999999.0" });
    await client.seen("agent_end");
    expect(client.types()[0]).toBe("snapshot");
  });

  it("continues from the position of an accepted input, with the message that streams there", async () => {
    const { sid, committer } = freshSession();
    const turn = aTurn({ turnId: "t-a", message: anAssistant([aText("hello")]), seqNo: 1, sessionId: sid });
    await committer.commit(turn.commits[0] as Commit);
    const input = await operator.journal.publishInput(sid, "steering", "m2", { messages: [] });
    const client = aClient(sid);
    await client.connect({ lastEventId: `${input.kind === "stored" ? input.seq : 0}.0` });
    const frames = framesOf(turn.messageId, [aText("hello")], [2]);
    await stream(sid, frames);
    await operator.deltas.append(sid, turn.messageId, joined(frames));
    await client.until(() => client.textOf(turn.messageId) === "hello", "frames of the running message");
    await committer.commit(turn.commits[1] as Commit, "idle");
    await client.seen("agent_end");
    expect(client.types()).not.toContain("snapshot");
  });

  it("refuses a malformed id with 400 and an unknown session with 404, as problem documents", async () => {
    const { sid, committer } = freshSession();
    await committer.commit(aCommit(1, { state: aRecord({ session_id: sid }) }));
    const malformed = await fetch(`${one.url}/v1/sessions/${sid}/events`, { headers: { "last-event-id": "soon" } });
    expect(malformed.status).toBe(400);
    expect(malformed.headers.get("content-type")).toBe("application/problem+json");
    expect(await malformed.json()).toMatchObject({ code: "INVALID_INPUT", field: "last-event-id", status: 400 });
    const unknown = await fetch(`${one.url}/v1/sessions/nobody/events`);
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  it("sends heartbeats as comments (field: kagent#1973)", async () => {
    const { sid, committer } = freshSession();
    await committer.commit(aCommit(1, { state: aRecord({ session_id: sid }) }));
    const client = aClient(sid);
    await client.connect();
    await until(() => client.comments.filter((line) => line === ": heartbeat").length >= 2, { what: "two heartbeats" });
  });

  it("streams a session that has an input but no commit yet", async () => {
    const { sid, committer } = freshSession();
    await operator.journal.publishInput(sid, "start", "m1", { turn_id: "t-a", workspace: "default", messages: [] });
    const client = aClient(sid);
    await client.connect();
    await client.seen("snapshot");
    expect(client.received[0]?.event).toMatchObject({ state: null, messages: [] });
    await commitTurn(committer, aTurn({ turnId: "t-a", message: anAssistant([aText("x")]), seqNo: 1, sessionId: sid }));
    await client.seen("agent_end");
  });

  it("closes the given-up message of a repeated call and streams the next one whole", async () => {
    const { sid, committer } = freshSession();
    const state = (id: string) => aRecord({ session_id: sid, model_call: aModelCall(id) });
    await committer.commit(aCommit(1, { state: state("a1"), events: [aStateChange("assistant_streaming")] }));
    const client = aClient(sid);
    await client.connect();
    await client.seen("turn_state_changed");
    await stream(sid, framesOf("a1", [aText("half an ans")], [3]));
    await client.until(() => client.textOf("a1") === "half an ans", "the first attempt");
    const aborted = { type: "message_aborted", message_id: "a1", reason: "transient" } as const;
    await committer.commit(aCommit(2, { state: state("a2"), events: [aborted] }));
    await stream(sid, framesOf("a2", [aText("whole")], [2]));
    await client.until(() => client.textOf("a2") === "whole", "the second attempt");
    expect(client.types().filter((type) => type === "message_aborted")).toHaveLength(1);
  });

  it("never takes a closed stream for a cancel (I14)", async () => {
    const { sid, committer } = freshSession();
    const before = await operator.journal.lastSequence(sid);
    const stored = await committer.commit(
      aCommit(1, { state: aRecord({ session_id: sid, model_call: aModelCall("m") }) }),
    );
    const client = aClient(sid);
    await client.connect();
    await client.seen("snapshot");
    await client.disconnect();
    const again = aClient(sid);
    await again.connect();
    await again.seen("snapshot");
    expect(before).toBe(0);
    expect(await operator.journal.lastSequence(sid)).toBe(stored.seq);
  });
});

describe("a client that is cut at every event and resumes on another replica (I10)", () => {
  async function playTurn(
    sid: string,
    committer: Committer,
    message: AssistantMessage,
    client: SseClient,
  ): Promise<string> {
    const turn = aTurn({ turnId: "t-a", message, seqNo: 1, sessionId: sid });
    await committer.commit(turn.commits[0] as Commit);
    const frames = framesOf(turn.messageId, message.content, [1, 4, 2]);
    let pending: TokenFrame[] = [];
    let replica = 0;
    for (const [index, frame] of frames.entries()) {
      const harness = [one, two][replica++ % 2] ?? one;
      await client.connect({ base: `${harness.url}/v1/sessions/${sid}/events`, lastEventId: client.lastId ?? "0" });
      const before = client.received.length;
      await stream(sid, [frame]);
      pending.push(frame);
      if (index % 3 === 2) {
        await operator.deltas.append(sid, turn.messageId, joined(pending));
        pending = [];
        await client.until(() => client.received.length > before, `an event after frame ${index}`);
      }
      await client.disconnect();
    }
    await operator.deltas.append(sid, turn.messageId, joined(pending));
    await committer.commit(turn.commits[1] as Commit, "idle");
    return turn.messageId;
  }

  it("has every character exactly once and strictly ordered ids (field: vercel/ai#19109)", async () => {
    const { sid, committer } = freshSession();
    const client = aClient(sid);
    const messageId = await playTurn(sid, committer, anAssistant(content), client);
    await client.connect({ base: `${two.url}/v1/sessions/${sid}/events` });
    await client.seen("agent_end");
    expect(client.text.get(messageId)).toEqual(expected);
    expect(client.types().filter((type) => type === "message_complete")).toHaveLength(1);
  });

  it("gets the same remainder from any replica, whichever of its ids it resumes with", async () => {
    const { sid, committer } = freshSession();
    const whole = aClient(sid);
    const messageId = await playTurn(sid, committer, anAssistant(content), aClient(sid));
    await whole.connect({ lastEventId: "0" });
    await whole.seen("agent_end");
    expect(whole.text.get(messageId)).toEqual(expected);
    for (const [index, { id }] of whole.received.entries()) {
      const rest = new SseClient(`${two.url}/v1/sessions/${sid}/events`);
      clients.push(rest);
      rest.text.set(messageId, textUpTo(whole, index));
      if (index < whole.received.length - 1) {
        await rest.connect({ lastEventId: id });
        await rest.seen("agent_end");
      }
      expect(rest.types()).toEqual(whole.types().slice(index + 1));
      await rest.disconnect();
    }
  });

  function textUpTo(client: SseClient, index: number): string[] {
    const blocks: string[] = [];
    for (const { event } of client.received.slice(0, index + 1)) {
      if (event.type === "message_update") blocks[event.index] = (blocks[event.index] ?? "") + event.delta;
    }
    return blocks;
  }
});
