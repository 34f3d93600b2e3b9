// Workers that a turn calls die under it: what a tool call or a model call then means (I4).
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { textOf } from "../fleet/client.ts";
import { resultOf, UnderFire } from "./under-fire.ts";

let fire: UnderFire;
beforeAll(async () => {
  fire = await UnderFire.start();
}, 60_000);
afterEach(() => fire.heal());
afterAll(() => fire?.stop());

const started = (sid: string, functionId: string): Promise<unknown> => fire.started(sid, functionId);

describe("SIGKILL of the tool's worker in mid-effect", () => {
  it("a `never` call ran once and its result says that the outcome is unknown (I4)", async () => {
    const watched = await fire.begin('call demo::slow {"ms":60000}\n---\nsay noticed');
    await started(watched.sid, "demo::slow");
    await fire.replace("demo");
    const messages = await fire.expectSound(watched);
    const result = resultOf(messages, "demo::slow");
    expect(result.is_error).toBe(true);
    expect(textOf(result)).toContain("unknown");
    expect(await fire.starts(watched.sid)).toEqual({ "demo::slow": 1 });
    expect(textOf(messages.at(-1))).toBe("noticed");
  }, 40_000);

  it("a `keyed` call runs again under the same key, beside a `safe` one whose answer is not asked for twice (I4)", async () => {
    const watched = await fire.begin(
      'call demo::ship {"order":"o1","ms":1500}\ncall demo::echo {"text":"e"}\n---\nsay shipped',
    );
    await started(watched.sid, "demo::ship");
    await watched.seen("function_execution_end", (data) => data.function_id === "demo::echo");
    await fire.replace("demo");
    const messages = await fire.expectSound(watched);
    expect(resultOf(messages, "demo::ship").is_error).toBe(false);
    const ships = (await fire.client.effects(watched.sid)).filter((effect) => effect.function_id === "demo::ship");
    expect(ships.map((effect) => effect.phase)).toEqual(["start", "start", "done"]);
    expect(new Set(ships.map((effect) => effect.idempotency_key)).size).toBe(1);
    expect((await fire.starts(watched.sid))["demo::echo"]).toBe(1);
  }, 40_000);

  it("calls that find the worker away wait for it: `never` and `safe` alike run once when it is back (I4)", async () => {
    const watched = await fire.begin(
      'tokens 30 20\ncall demo::echo {"text":"e"}\ncall demo::slow {"ms":100}\n---\nsay fine',
    );
    await watched.streamed("5");
    await fire.end("demo");
    await watched.seen("function_execution_start", (data) => data.function_id === "demo::slow");
    await fire.revive("demo");
    const messages = await fire.expectSound(watched);
    expect(messages.filter((message) => message.is_error === true)).toEqual([]);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::echo": 1, "demo::slow": 1 });
  }, 40_000);
});

describe("a request that dies unread with its worker", () => {
  it("is sent again, since nothing has started: `never` and `safe` alike run once (I4)", async () => {
    const watched = await fire.begin(
      'tokens 30 20\ncall demo::echo {"text":"e"}\ncall demo::slow {"ms":100}\n---\nsay fine',
    );
    await watched.streamed("5");
    fire.fleet.signal("demo", 0, "SIGSTOP");
    await watched.seen("function_execution_start", (data) => data.function_id === "demo::slow");
    await fire.replace("demo");
    const messages = await fire.expectSound(watched);
    expect(messages.filter((message) => message.is_error === true)).toEqual([]);
    expect(await fire.starts(watched.sid)).toEqual({ "demo::echo": 1, "demo::slow": 1 });
  }, 40_000);
});

describe("a frozen worker", () => {
  it.each([
    { worker: "demo", script: 'call demo::slow {"ms":60000}\n---\nsay never' },
    { worker: "provider-scripted", script: "tokens 500 20" },
  ])(
    "$worker does not hold up an abort: the turn ends within 2 s (I14)",
    async ({ worker, script }) => {
      const watched = await fire.begin(script);
      if (worker === "demo") await started(watched.sid, "demo::slow");
      else await watched.streamed("5");
      fire.fleet.signal(worker, 0, "SIGSTOP");
      const askedAt = performance.now();
      const answer = await fire.client.post(`/v1/sessions/${watched.sid}/abort`, {});
      await watched.seen("agent_end");
      expect(performance.now() - askedAt).toBeLessThan(2_000);
      expect(answer.body).toMatchObject({ aborted: true, state: "stopped" });
      fire.fleet.signal(worker, 0, "SIGCONT");
      // A frozen provider stores nothing of its last 100 ms, which a live client may have seen: only then the texts may differ.
      const messages = worker === "demo" ? await fire.expectSound(watched) : await fire.client.messages(watched.sid);
      const cut = worker === "demo" ? resultOf(messages, "demo::slow") : messages.at(-1);
      expect(cut).toMatchObject(worker === "demo" ? { is_error: true } : { stop_reason: "aborted" });
    },
    40_000,
  );
});

describe("SIGKILL of the provider in mid-stream", () => {
  it("closes the lost attempt, and the next one is a new message that completes the turn (I10)", async () => {
    const watched = await fire.begin('tokens 60 30\ncall demo::echo {"text":"e"}\n---\nsay end');
    const lost = await watched.streamed("10");
    await fire.replace("provider-scripted");
    const messages = await fire.expectSound(watched);
    const aborted = watched.all("message_aborted").map((event) => event.data.message_id);
    expect(aborted).toEqual([lost.message_id]);
    const completed = watched.all("message_complete").map((event) => event.data.message_id);
    expect(completed).not.toContain(lost.message_id);
    expect(new Set(completed).size).toBe(2);
    const calls = await fire.modelCalls(watched.sid);
    expect(calls.map((call) => call.message_id)).toEqual([lost.message_id, ...completed]);
    expect(textOf(messages[1])).toBe(Array.from({ length: 60 }, (_, i) => i + 1).join(" "));
    expect(await fire.starts(watched.sid)).toEqual({ "demo::echo": 1 });
  }, 40_000);
});
