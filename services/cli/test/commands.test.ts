// Behaviour of the commands that talk to a running fleet, against a real one.
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Recorded, runFlotilla, startFlotilla } from "./run-flotilla.ts";

let fleet: StartedFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.stop());

const flotilla = (...args: string[]): Promise<Recorded> => runFlotilla(args, { env: { FLOTILLA_URL: fleet.url } });
const json = async (...args: string[]) => JSON.parse((await flotilla(...args, "--json")).out);

const newSession = (): string => `cli-${randomUUID().slice(0, 8)}`;

/** Starts a turn of the scripted provider, without waiting for it. */
async function start(session: string, script: string): Promise<void> {
  const body = { provider: "scripted", model: "play", text: script };
  const answer = await json("call", "run::start", JSON.stringify({ session_id: session, ...body }));
  expect(answer).toMatchObject({ accepted: true });
}
async function reach(session: string, state: string): Promise<void> {
  await until(async () => (await json("show", session)).state === state, { what: `${session} is ${state}` });
}

describe("flotilla chat", () => {
  it("streams a turn per line of a pipe, with its calls and results", async () => {
    const session = newSession();
    const stdin = Readable.from(["say first\n", 'call demo::echo {"text":"hi"}\n']);
    const play = ["--provider", "scripted", "--model", "play"];
    const { out, exitCode } = await runFlotilla(["chat", "--session", session, ...play], {
      env: { FLOTILLA_URL: fleet.url },
      stdin,
    });
    expect(exitCode).toBe(0);
    expect(out).toBe('first\n→ demo::echo {"text":"hi"}\n✓ demo::echo hi\ndone\n');
  });

  it("asks for an approval inline and lets the call run when the answer is yes", async () => {
    const { out } = await chat(newSession(), ['call demo::refund {"order":"7","amount":5}\n', "y\n"]);
    expect(out).toContain("• demo::refund: allow");
    expect(out).toContain("✓ demo::refund");
  });

  it("denies with the answer as the reason when it is not yes", async () => {
    const session = newSession();
    const { out } = await chat(session, ['call demo::refund {"order":"8","amount":5}\n', "too much\n"]);
    expect(out).toContain("• demo::refund: deny");
    expect((await flotilla("show", session)).out).toContain("too much");
  });

  it("leaves a turn parked when nobody is there to ask, and says how to decide; --session takes it up again", async () => {
    const session = newSession();
    const first = await chat(session, ['call demo::refund {"order":"9","amount":5}\n']);
    expect(first.err).toContain(`flotilla show ${session}`);
    expect((await json("show", session)).state).toBe("function_awaiting_approval");
    const second = await chat(session, ["yes\n", "say more\n"]);
    expect(second.out).toContain("✓ demo::refund");
    expect(second.out).toContain("more\n");
    expect((await json("show", session)).state).toBe("stopped");
  });

  it("aborts the turn on Ctrl-C and goes on", async () => {
    const session = newSession();
    const args = ["chat", "--session", session, "--provider", "scripted", "--model", "play"];
    const running = startFlotilla(args, { FLOTILLA_URL: fleet.url });
    running.child.stdin?.write("tokens 1000 20\n");
    await until(() => running.output().includes("10 11 12"), { what: "it streams" });
    running.child.kill("SIGINT");
    await reach(session, "stopped");
    running.child.stdin?.end("say after\n");
    const exitCode = await running.exited;
    expect(running.output()).toContain("aborting the turn");
    expect(running.output()).toContain("(turn ended: aborted)");
    expect(running.output()).toContain("after\n");
    expect(exitCode).toBe(0);
  });

  it("prints the events themselves with --json", async () => {
    const { out } = await chat(newSession(), ["say x\n"], "--json");
    const events = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: string; event: string });
    expect(events.map((event) => event.event)).toEqual(expect.arrayContaining(["message_complete", "agent_end"]));
  });

  function chat(session: string, lines: string[], ...more: string[]): Promise<Recorded> {
    const args = ["chat", "--session", session, "--provider", "scripted", "--model", "play", ...more];
    return runFlotilla(args, { env: { FLOTILLA_URL: fleet.url }, stdin: Readable.from(lines) });
  }
});

describe("flotilla approve and deny", () => {
  it("decide a parked call with the digest of the arguments that they show", async () => {
    const session = newSession();
    await start(session, 'call demo::refund {"order":"1","amount":2}');
    await reach(session, "function_awaiting_approval");
    const [call] = (await json("show", session)).awaiting_approval;
    const { out, exitCode } = await flotilla("approve", session, call.function_call_id);
    expect(exitCode).toBe(0);
    expect(out).toContain('approved: demo::refund {"order":"1","amount":2}');
    await reach(session, "stopped");
    const again = await flotilla("deny", session, call.function_call_id);
    expect(again.exitCode).toBe(1);
    expect(again.err).toContain("waits for no decision");
  });
});

describe("flotilla abort", () => {
  it("ends a running turn, and says so when nothing runs", async () => {
    const session = newSession();
    await start(session, "tokens 1000 20");
    await reach(session, "assistant_streaming");
    expect((await flotilla("abort", session)).out).toContain("aborted");
    await reach(session, "stopped");
    expect((await flotilla("abort", session)).out).toBe("nothing was running\n");
  });
});

describe("the lists", () => {
  it("show sessions, workers and functions as tables and as JSON", async () => {
    const session = newSession();
    await start(session, "say listed");
    await until(async () => (await flotilla("sessions")).out.includes(session), { what: "it is listed" });
    expect((await json("sessions", "--limit", "1")).sessions).toHaveLength(1);
    const workers = await flotilla("workers");
    expect(workers.out).toMatch(/^policy +live +1 /m);
    const functions = await flotilla("functions");
    expect(functions.out).toMatch(/^demo::echo +demo +live +\S+ +safe /m);
    expect(await json("functions", "demo::echo")).toMatchObject({
      id: "demo::echo",
      request_schema: { type: "object" },
    });
    expect((await flotilla("functions", "demo::nothing")).err).toContain("no worker offers demo::nothing");
  });
});

describe("flotilla call", () => {
  it("prints the answer", async () => {
    expect((await flotilla("call", "demo::echo", '{"text":"hi"}')).out).toContain("hi");
  });

  it("shows why a function cannot be called", async () => {
    expect(await flotilla("call", "auth::get_token", "{}")).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("[FORBIDDEN]"),
    });
    expect((await flotilla("call", "demo::nothing")).err).toContain("[FUNCTION_NOT_FOUND]");
  });

  it.each(["[1]", "{", "null"])("refuses %j as arguments before it calls anything", async (text) => {
    expect((await flotilla("call", "demo::echo", text)).err).toMatch(/must be a JSON object|are not JSON/);
  });
});

describe("flotilla rebuild", () => {
  it("rebuilds the projection after Redis lost everything (I7)", async () => {
    const session = newSession();
    await start(session, "say kept");
    await reach(session, "stopped");
    await fleet.redis.restart();
    const { out } = await until(
      async () => {
        const answer = await flotilla("rebuild");
        return answer.exitCode === 0 ? answer : null;
      },
      { what: "the rebuild is done", timeoutMs: 20_000 },
    );
    expect(out).toMatch(/rebuilt \d+ sessions from \d+ commits/);
    expect((await flotilla("sessions", "--limit", "1000")).out).toContain(session);
  });
});

describe("without a fleet", () => {
  it("names the URL and how to start one", async () => {
    const { err, exitCode } = await runFlotilla(["sessions", "--url", "http://127.0.0.1:1"]);
    expect(exitCode).toBe(1);
    expect(err).toContain("nothing answers at http://127.0.0.1:1");
    expect(err).toContain("make up");
  });

  it("says it as JSON with --json", async () => {
    const { out } = await runFlotilla(["workers", "--url", "http://127.0.0.1:1", "--json"]);
    expect(JSON.parse(out)).toMatchObject({ error: { code: "UNREACHABLE" } });
  });
});
