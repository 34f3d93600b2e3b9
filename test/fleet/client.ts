// What a user's program does, for tests: plain HTTP and SSE against a fleet.
import { randomId } from "@flotilla/contracts";
import { until } from "@flotilla/testkit";

export interface Json {
  // biome-ignore lint/suspicious/noExplicitAny: an API answer of a test, checked by its assertions
  [key: string]: any;
}

export interface Answer {
  readonly status: number;
  readonly body: Json;
}

export class Client {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(`${this.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Json };
  }

  async get(path: string): Promise<Answer> {
    const response = await fetch(`${this.url}${path}`);
    return { status: response.status, body: (await response.json()) as Json };
  }

  start(sid: string, text: string, fields: Json = {}): Promise<Answer> {
    return this.post(`/v1/sessions/${sid}/turns`, { provider: "scripted", model: "play", text, ...fields });
  }

  async state(sid: string): Promise<Json> {
    return (await this.get(`/v1/sessions/${sid}`)).body;
  }

  async messages(sid: string): Promise<Json[]> {
    return ((await this.get(`/v1/sessions/${sid}/messages`)).body.messages as Json[]).map((row) => row.message as Json);
  }

  /** Waits until the session has the state. */
  reach(sid: string, state: string, timeoutMs = 15_000): Promise<Json> {
    return until(
      async () => {
        const now = await this.state(sid);
        return now.state === state ? now : null;
      },
      { timeoutMs, what: `${sid} is ${state}` },
    );
  }

  /** Starts a turn and waits for its end; answers the transcript. */
  async play(text: string, fields: Json = {}): Promise<{ sid: string; messages: Json[]; state: Json }> {
    const sid = `s-${randomId().replaceAll("_", "x")}`;
    const accepted = await this.start(sid, text, fields);
    if (accepted.status !== 202) throw new Error(`not accepted: ${accepted.status} ${JSON.stringify(accepted.body)}`);
    const state = await this.reach(sid, "stopped");
    return { sid, messages: await this.messages(sid), state };
  }

  async trigger(functionId: string, payload: Json): Promise<Json> {
    return (await this.post("/v1/trigger", { function_id: functionId, payload })).body.body as Json;
  }

  async effects(sid: string): Promise<Json[]> {
    return (await this.trigger("demo::effects", { session_id: sid })).effects as Json[];
  }
}

export function newSession(): string {
  return `s-${randomId().replaceAll("_", "x")}`;
}

export function textOf(message: Json | undefined): string {
  const blocks = (message?.content ?? []) as Json[];
  return blocks.map((block) => (block.type === "text" ? String(block.text) : "")).join("");
}

/** I5: every tool call has exactly one result, adjacent and in order, before the next model call. */
export function assertValidTranscript(messages: readonly Json[]): void {
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === "function_result") {
      const expected = open.shift();
      if (message.function_call_id !== expected)
        throw new Error(`result of ${message.function_call_id} where ${expected} was due`);
      continue;
    }
    if (open.length > 0) throw new Error(`calls without a result before ${message.role}: ${open.join(", ")}`);
    if (message.role === "assistant")
      open = (message.content as Json[])
        .filter((block) => block.type === "function_call")
        .map((block) => String(block.id));
  }
  if (open.length > 0) throw new Error(`calls without a result at the end: ${open.join(", ")}`);
}
