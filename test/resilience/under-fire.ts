// A process fleet that a test shoots at, and what a user sees of a session meanwhile.
import { type ProcessFleet, type ProcessFleetOptions, startProcessFleet, until } from "@flotilla/testkit";
import { Redis } from "ioredis";
import { expect } from "vitest";
import { assertValidTranscript, Client, type Json, newSession } from "../fleet/client.ts";
import { checkJournal } from "../kill/journal-check.ts";
import { LiveReplicas } from "../kill/live-replicas.ts";
import { checkStream } from "../kill/session-driver.ts";
import { type SseEvent, SseReader } from "../kill/sse-reader.ts";

/** Workers of a turn without a vendor. */
export const workers = [
  "harness",
  "policy",
  "turn-orchestrator",
  "approval-gate",
  "session",
  "models-catalog",
  "provider-scripted",
  "demo",
];

export class UnderFire {
  readonly fleet: ProcessFleet;
  readonly client: Client;
  readonly live: LiveReplicas;
  readonly #replicas: Readonly<Record<string, number>>;
  #watched: Watched[] = [];

  constructor(fleet: ProcessFleet, replicas: Readonly<Record<string, number>>) {
    this.fleet = fleet;
    this.#replicas = replicas;
    this.client = new Client(fleet.urls[0] ?? "");
    this.live = new LiveReplicas(fleet);
  }

  static async start(options: ProcessFleetOptions = {}): Promise<UnderFire> {
    return new UnderFire(await startProcessFleet({ workers, ...options }), options.replicas ?? {});
  }

  async stop(): Promise<void> {
    this.#unwatch();
    await this.fleet.stop();
  }

  /** After a test, also a failed one: everything runs again, so that the next one starts from a whole fleet. */
  async heal(): Promise<void> {
    this.#unwatch();
    for (const worker of workers) {
      for (let replica = 0; replica < (this.#replicas[worker] ?? 1); replica++) {
        if (this.fleet.isRunning(worker, replica)) this.fleet.signal(worker, replica, "SIGCONT");
        else await this.revive(worker, replica);
      }
    }
  }

  #unwatch(): void {
    for (const watched of this.#watched) watched.stop();
    this.#watched = [];
  }

  /** Starts a turn and follows its events from the beginning, over every reconnect. */
  async begin(script: string, fields: Json = {}): Promise<Watched> {
    const sid = newSession();
    const accepted = await this.client.start(sid, script, fields);
    if (accepted.status !== 202) throw new Error(`not accepted: ${accepted.status} ${JSON.stringify(accepted.body)}`);
    return this.watch(sid);
  }

  watch(sid: string): Watched {
    const watched = new Watched(sid, this.fleet.urls);
    this.#watched.push(watched);
    return watched;
  }

  end(worker: string, replica = 0, signal: NodeJS.Signals = "SIGKILL"): Promise<string | null> {
    return this.live.end(worker, replica, signal);
  }

  revive(worker: string, replica = 0): Promise<void> {
    return this.live.revive(worker, replica);
  }

  /** SIGKILL, and a new process at once. */
  async replace(worker: string, replica = 0): Promise<void> {
    await this.end(worker, replica);
    await this.revive(worker, replica);
  }

  decide(sid: string, request: Json, decision: "allow" | "deny" = "allow"): Promise<void> {
    return decide(this.client, sid, request, decision);
  }

  /** Waits for the end of the turn, and checks all that must hold whatever was killed (I1, I2, I4, I5, I10). */
  async expectSound(watched: Watched, ended: { state?: string; turns?: number } = {}): Promise<Json[]> {
    const { sid } = watched;
    await until(() => watched.all("agent_end").length >= (ended.turns ?? 1), {
      what: `the end of ${sid}`,
      timeoutMs: 30_000,
    });
    await this.client.reach(sid, ended.state ?? "stopped");
    const messages = await this.client.messages(sid);
    assertValidTranscript(messages);
    expect(checkStream(watched.events, ended.turns)).toEqual([]);
    expect(checkJournal(await this.fleet.bus.journal.readCommits(sid, 1))).toEqual([]);
    return messages;
  }

  /** The function has started for the session: its effect is in the tool's own log. */
  started(sid: string, functionId: string): Promise<unknown> {
    const what = `${functionId} of ${sid} runs`;
    return until(async () => ((await this.starts(sid))[functionId] ?? 0) > 0, { what, timeoutMs: 20_000 });
  }

  async flushRedis(): Promise<void> {
    const redis = new Redis(this.fleet.redis.url);
    await redis.flushall();
    await redis.quit();
  }

  /** How often each function of the demo worker started for the session. */
  async starts(sid: string): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const effect of await this.client.effects(sid))
      if (effect.phase === "start") counts[effect.function_id] = (counts[effect.function_id] ?? 0) + 1;
    return counts;
  }

  async modelCalls(sid: string): Promise<Json[]> {
    return (await this.client.trigger("provider::scripted::calls", { session_id: sid })).calls as Json[];
  }

  async readyz(): Promise<number> {
    const response = await fetch(`${this.client.url}/readyz`, { signal: AbortSignal.timeout(5_000) });
    await response.arrayBuffer();
    return response.status;
  }
}

/** The event stream of one session. */
export class Watched {
  readonly sid: string;
  readonly #reader: SseReader;
  #fault: unknown = null;

  constructor(sid: string, urls: readonly string[]) {
    this.sid = sid;
    this.#reader = new SseReader(urls, `/v1/sessions/${sid}/events`);
    void this.#read();
  }

  get events(): readonly SseEvent[] {
    return this.#reader.seen;
  }

  all(type: string): SseEvent[] {
    return this.events.filter((event) => event.type === type);
  }

  /** The first event of the type that passes. */
  async seen(type: string, passes: (data: Json) => boolean = () => true, timeoutMs = 20_000): Promise<Json> {
    const found = await until(
      () => {
        if (this.#fault !== null) throw this.#fault;
        return this.events.find((event) => event.type === type && passes(event.data));
      },
      { what: `${type} of ${this.sid}`, timeoutMs },
    );
    return found.data;
  }

  /** The model has streamed this text by now, in any of its messages. */
  streamed(text: string): Promise<Json> {
    return this.seen("message_update", (data) => String(data.delta).includes(text));
  }

  stop(): void {
    this.#reader.stop();
  }

  async #read(): Promise<void> {
    try {
      for await (const _ of this.#reader);
    } catch (error) {
      this.#fault = error;
    }
  }
}

/** Allows or denies; tried again while a worker of the way is away. */
export async function decide(client: Client, sid: string, request: Json, decision: "allow" | "deny"): Promise<void> {
  const path = `/v1/sessions/${sid}/approvals/${request.function_call_id}`;
  const body = { decision, args_digest: request.args_digest };
  await until(async () => (await client.post(path, body)).status === 200, {
    what: `the decision on ${request.function_call_id} is stored`,
    timeoutMs: 20_000,
  });
}

/** The result of the call of this function, once it is in the transcript. */
export function resultOf(messages: readonly Json[], functionId: string): Json {
  const found = messages.find((message) => message.role === "function_result" && message.function_id === functionId);
  if (found === undefined) throw new Error(`no result of ${functionId}`);
  return found;
}
