// flotilla migrate-shards as a user runs it: fleet down, move, fleet up again; killed in the middle and run once more.
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { shardOf } from "@flotilla/contracts";
import { freePorts, type LocalFleet, startLocalFleet } from "@flotilla/fleet";
import { apiClient, type SentEvent, sessionEvents, until } from "@flotilla/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { runFlotilla, startFlotilla } from "./run-flotilla.ts";

type Json = Record<string, unknown>;
type Message = { message: { role: string; timestamp: number }; entry_id: string };

const sessions = Array.from({ length: 40 }, (_, n) => `mv-${n}`);
const parked = sessions.filter((_, n) => n % 5 === 0);
const script = (sid: string): string =>
  parked.includes(sid)
    ? 'call demo::refund {"order":"A1","amount":5}\n---\nsay refunded'
    : `call demo::echo {"text":"${sid}"}\n---\nsay done`;

let home: string;
let port: number;
let fleet: LocalFleet | null = null;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "flotilla-move-"));
  port = await freePorts(1);
});
afterEach(() => stop());
afterAll(() => rmSync(home, { recursive: true, force: true }));

async function start(shards: number): Promise<void> {
  const env = { PATH: process.env.PATH, TURN_SHARDS: String(shards), DRAIN_SECONDS: "1" };
  fleet = await startLocalFleet({ home, port, env });
}
async function stop(): Promise<void> {
  await fleet?.stop();
  fleet = null;
}
const api = () => apiClient({ url: `http://127.0.0.1:${port}` });
const get = async (path: string): Promise<Json> => (await api().get(path)) as Json;
const turn = (sid: string, text: string): Promise<unknown> =>
  api().post(`/v1/sessions/${sid}/turns`, { provider: "scripted", model: "play", text });
const reach = (sid: string, state: string): Promise<unknown> =>
  until(async () => (await get(`/v1/sessions/${sid}`)).state === state, {
    what: `${sid} is ${state}`,
    timeoutMs: 20_000,
  });

async function transcripts(): Promise<Map<string, unknown>> {
  const all = new Map<string, unknown>();
  for (const sid of sessions) {
    const { messages } = (await get(`/v1/sessions/${sid}/messages`)) as { messages: Message[] };
    const { state, turn_id, usage, awaiting_approval } = await get(`/v1/sessions/${sid}`);
    all.set(sid, { messages, state, turn_id, usage, awaiting_approval });
  }
  return all;
}

async function firstEvents(sid: string, lastEventId: string | undefined, count: number): Promise<SentEvent[]> {
  const end = new AbortController();
  const events: SentEvent[] = [];
  for await (const event of sessionEvents(api(), sid, { lastEventId, signal: end.signal })) {
    // What is buffered behind it still comes after the abort; only the first ones count.
    if (events.length < count && events.push(event) === count) end.abort();
  }
  return events;
}

const cli = { FLOTILLA_HOME: "", FLOTILLA_PORT: "" };
const migrate = (to: number) =>
  runFlotilla(["migrate-shards", "--to", String(to)], { env: { ...cli, FLOTILLA_HOME: home } });

describe("flotilla migrate-shards", () => {
  const before = new Map<string, unknown>();
  const positions = new Map<string, string>();
  beforeAll(async () => {
    await start(1);
    await Promise.all(sessions.map((sid) => turn(sid, script(sid))));
    for (const sid of sessions) await reach(sid, parked.includes(sid) ? "function_awaiting_approval" : "stopped");
    for (const [sid, seen] of await transcripts()) before.set(sid, seen);
    for (const sid of sessions.slice(0, 12)) {
      const events = await firstEvents(sid, "0", 2);
      positions.set(sid, events.at(-1)?.id ?? "");
    }
  }, 90_000);

  it("refuses while a fleet runs in this home", async () => {
    expect(await migrate(3)).toMatchObject({ exitCode: 1, err: expect.stringContaining("a fleet is already running") });
  });

  it("moves a stopped fleet from 1 to 3 shards, also when it is killed in the middle and run again", async () => {
    const first = startFlotilla(["migrate-shards", "--to", "3"], { FLOTILLA_HOME: home });
    await until(() => first.output().includes("copied "), {
      what: "it has copied some",
      timeoutMs: 20_000,
      intervalMs: 1,
    });
    first.child.kill("SIGKILL");
    await first.exited;
    expect(first.output()).not.toContain("comparing");
    await expect(start(3)).rejects.toThrow("end it with `flotilla migrate-shards --to 3`");
    const moved = sessions.filter((sid) => shardOf(sid, 3) !== 0).length;
    const { out, exitCode } = await migrate(3);
    expect(exitCode).toBe(0);
    expect(out).toBe(`moved ${moved} of 40 sessions from 1 to 3 shards; start the fleet with TURN_SHARDS=3\n`);
    expect(readdirSync(join(home, "run"))).toEqual([]);
  }, 60_000);

  it("leaves every transcript, state and open approval as it was, and the lists as well (I7)", async () => {
    await start(3);
    expect(await transcripts()).toEqual(before);
    const { sessions: listed, total } = (await get("/v1/sessions?limit=100")) as { sessions: Json[]; total: number };
    expect(total).toBe(40);
    expect(listed.map((row) => row.session_id).sort()).toEqual([...sessions].sort());
    const { approvals } = (await get("/v1/approvals")) as { approvals: Json[] };
    expect(approvals.map((row) => row.session_id).sort()).toEqual([...parked].sort());
  }, 60_000);

  it("gives a reader with a position of before a snapshot when its session was moved, and the rest when it was not (I10)", async () => {
    await start(3);
    for (const [sid, position] of positions) {
      const [{ event = "" } = {}] = await firstEvents(sid, position, 1);
      const isMoved = shardOf(sid, 3) !== shardOf(sid, 1);
      if (isMoved) expect(event, sid).toBe("snapshot");
      else expect(event, sid).not.toBe("snapshot");
    }
  }, 60_000);

  it("goes on from 3 to 2 shards; then each approval can be given and each session takes another turn", async () => {
    expect((await migrate(2)).exitCode).toBe(0);
    await start(2);
    expect(await transcripts()).toEqual(before);
    for (const sid of parked) {
      const { approvals } = (await get(`/v1/approvals?session_id=${sid}`)) as { approvals: Json[] };
      const { function_call_id: call, args_digest } = approvals[0] ?? {};
      await api().post(`/v1/sessions/${sid}/approvals/${String(call)}`, { decision: "allow", args_digest });
    }
    for (const sid of parked) await reach(sid, "stopped");
    await Promise.all(sessions.map((sid) => turn(sid, "say once more")));
    for (const sid of sessions) {
      await until(
        async () => {
          const { messages } = (await get(`/v1/sessions/${sid}/messages`)) as { messages: { message: Json }[] };
          return JSON.stringify(messages.at(-1)?.message.content).includes("once more") && messages.length >= 6;
        },
        { what: `${sid} has answered again`, timeoutMs: 20_000 },
      );
      await reach(sid, "stopped");
    }
    const effects = (await api().post("/v1/trigger", { function_id: "demo::effects", payload: {} })) as {
      body: { effects: { phase: string }[] };
    };
    expect(effects.body.effects.filter(({ phase }) => phase === "start")).toHaveLength(40);
  }, 90_000);

  it("names what is wrong: no journal, no such number", async () => {
    const empty = mkdtempSync(join(tmpdir(), "flotilla-empty-"));
    const none = await runFlotilla(["migrate-shards", "--to", "3"], { env: { ...cli, FLOTILLA_HOME: empty } });
    expect(none).toMatchObject({ exitCode: 1, err: expect.stringContaining("there is no journal in") });
    expect(existsSync(join(empty, "run"))).toBe(false);
    rmSync(empty, { recursive: true });
    expect(await migrate(0)).toMatchObject({
      exitCode: 78,
      err: expect.stringContaining("--to must be a whole number"),
    });
    expect(await migrate(2)).toMatchObject({
      exitCode: 0,
      out: "the journal has 2 shards, there is nothing to move\n",
    });
  });
});
