// One session of a kill run, as a user would live it: starts a turn, reads its events over reconnects, approves.
import { until } from "@flotilla/testkit";
import { assertValidTranscript, Client, type Json, newSession, textOf } from "../fleet/client.ts";
import { expectedStarts, killScript, modelCalls } from "./script.ts";
import { type SseEvent, SseReader } from "./sse-reader.ts";

export interface DriverOptions {
  readonly index: number;
  /** Harness addresses; the reader moves to the next one when a stream breaks. */
  readonly urls: readonly string[];
  /** Contract: called at each edge; resolves when the turn may go on being watched. */
  readonly onEdge: (sessionId: string, edge: string) => void;
  readonly timeoutMs: number;
}

/** Resolves with the problems found; none means that the turn was as if nothing had been killed. */
export async function driveSession(options: DriverOptions): Promise<{ sessionId: string; problems: string[] }> {
  const sessionId = newSession();
  const client = new Client(options.urls[options.index % options.urls.length] ?? "");
  const accepted = await until(
    () => client.start(sessionId, killScript(options.index), { message_id: `m-${sessionId}` }),
    { what: "the turn is accepted" },
  );
  if (accepted.status !== 202 && accepted.status !== 200)
    return { sessionId, problems: [`start answered ${accepted.status}`] };
  options.onEdge(sessionId, "accepted");
  const reader = new SseReader(options.urls, `/v1/sessions/${sessionId}/events`, options.index);
  const timer = setTimeout(() => reader.stop(), options.timeoutMs);
  const problems: string[] = [];
  try {
    for await (const event of reader) {
      edgeOf(event, (edge) => options.onEdge(sessionId, edge));
      if (event.type === "approval_requested")
        await approve(client, sessionId, event.data).then(() => options.onEdge(sessionId, "approved"));
      if (event.type === "agent_end") break;
    }
    problems.push(...checkStream(reader.seen));
    problems.push(...(await checkSession(client, sessionId, reader.seen)));
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
    reader.stop();
  }
  return { sessionId, problems };
}

function edgeOf(event: SseEvent, report: (edge: string) => void): void {
  report(event.type);
  if (event.type === "turn_state_changed") report(`turn_state_changed:${event.data.new_value.state}`);
  if (event.type === "message_update" && String(event.data.delta).includes("done")) report("message_update:last");
}

async function approve(client: Client, sessionId: string, request: Json): Promise<void> {
  const path = `/v1/sessions/${sessionId}/approvals/${request.function_call_id}`;
  await until(
    async () => {
      const answer = await client.post(path, { decision: "allow", args_digest: request.args_digest });
      return answer.status === 200 || answer.body.code === "APPROVAL_DECIDED";
    },
    { what: `the approval of ${sessionId} is accepted`, timeoutMs: 20_000 },
  );
}

/** I10: nothing twice, nothing out of order, no gap and no overlap in any message's text. */
export function checkStream(events: readonly SseEvent[], turns = 1): string[] {
  const problems: string[] = [];
  const ids = events.map((event) => event.id);
  if (new Set(ids).size !== ids.length) problems.push("an event id came twice");
  const texts = new Map<string, string>();
  for (const event of events) {
    if (event.type === "message_update") {
      const key = `${event.data.message_id}#${event.data.index}`;
      const before = texts.get(key) ?? "";
      if (event.data.offset !== before.length)
        problems.push(`offset ${event.data.offset} where ${before.length} was due in ${key}`);
      texts.set(key, before + String(event.data.delta));
    }
    if (event.type === "message_complete" && event.data.body_streamed === true) {
      for (const [index, block] of (event.data.message.content as Json[]).entries()) {
        if (block.type !== "text" && block.type !== "thinking") continue;
        const streamed = texts.get(`${event.data.message_id}#${index}`) ?? "";
        if (streamed !== block.text)
          problems.push(`streamed text of ${event.data.message_id}#${index} differs from the message`);
      }
    }
  }
  const ends = events
    .filter((event) => event.type === "function_execution_end")
    .map((event) => String(event.data.function_call_id));
  if (new Set(ends).size !== ends.length) problems.push("a function_execution_end came twice");
  const finished = events.filter((event) => event.type === "agent_end").length;
  if (finished !== turns) problems.push(`agent_end came ${finished} times in ${turns} turns`);
  return problems;
}

async function checkSession(client: Client, sessionId: string, events: readonly SseEvent[]): Promise<string[]> {
  const problems: string[] = [];
  const state = await client.reach(sessionId, "stopped");
  if (state.error !== undefined) problems.push(`the turn ended with ${JSON.stringify(state.error)}`);
  const messages = await client.messages(sessionId);
  try {
    assertValidTranscript(messages);
  } catch (error) {
    problems.push(String(error));
  }
  if (!textOf(messages.at(-1)).includes("All done"))
    problems.push(`the last message is ${JSON.stringify(messages.at(-1))}`);
  for (const message of messages)
    if (message.is_error === true) problems.push(`a result is an error: ${textOf(message)}`);
  const started = (await client.effects(sessionId)).filter((effect) => effect.phase === "start");
  for (const [name, count] of Object.entries(expectedStarts)) {
    const found = started.filter((effect) => effect.function_id === name).length;
    if (found !== count) problems.push(`${name} started ${found} times instead of ${count}`);
  }
  const calls = (await client.trigger("provider::scripted::calls", { session_id: sessionId })).calls as Json[];
  if (calls.length !== modelCalls) problems.push(`${calls.length} model calls instead of ${modelCalls}`);
  const completes = events
    .filter((event) => event.type === "message_complete")
    .map((event) => String(event.data.entry_id));
  const assistants = messages.filter((message) => message.role === "assistant").length;
  if (completes.length !== assistants)
    problems.push(`${completes.length} message_complete events for ${assistants} assistant messages`);
  return problems;
}
