// The harness's functions on the bus: harness::trigger, ui::subscribe and ui::unsubscribe.
import type { Bus } from "@flotilla/bus";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import type { HandlerContext } from "@flotilla/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anAssistant, aText, aTurn } from "./builders.ts";
import { Committer, connectAs, offer, startHarness, type TestHarness } from "./support.ts";

let nats: StartedNats;
let operator: Bus;
let harness: TestHarness;
const context = { workspace: "default" } as HandlerContext;

interface Push {
  session_id: string;
  id: string;
  event: { type: string; delta?: string };
}

beforeAll(async () => {
  nats = await startNats({ workers: ["browser-tab"] });
  operator = await connectAs(nats, "operator");
  harness = await startHarness(nats);
});
afterAll(async () => {
  await harness.stop();
  await operator.close();
  await nats.stop();
});

function invoke(id: string, request: unknown): Promise<unknown> {
  return Promise.resolve(harness.functionOf(id)(context, request as never));
}

async function aBrowser(browserId: string): Promise<{ pushes: Push[]; leave(): Promise<void> }> {
  const bus = await connectAs(nats, "browser-tab");
  const pushes: Push[] = [];
  const offered = await offer(bus, {
    [`ui::session::event::${browserId}`]: (push: Push) => {
      pushes.push(push);
      return { ok: true };
    },
  });
  const id = `ui::session::event::${browserId}`;
  await until(() => harness.bus.registry.resolve(id)?.live, { what: "the browser is known" });
  return {
    pushes,
    async leave() {
      await offered.stop();
      await bus.close();
    },
  };
}

async function runTurn(sid: string, turnId: string, text: string): Promise<void> {
  const committer = new Committer(operator, sid);
  const turn = aTurn({ turnId, message: anAssistant([aText(text)]), seqNo: 1, sessionId: sid });
  await committer.commit(turn.commits[0] as never);
  await committer.commit(turn.commits[1] as never, "idle");
}

describe("harness::trigger", () => {
  it("starts a turn and answers like an HTTP response", async () => {
    const providers = await connectAs(nats, "provider-scripted");
    await offer(providers, { "provider::scripted::stream": () => null });
    await until(() => harness.bus.registry.resolve("provider::scripted::stream"), { what: "the provider is known" });
    const answer = await invoke("harness::trigger", { session_id: "h1", message_id: "m1", payload: { text: "hi" } });
    expect(answer).toMatchObject({ status_code: 200, body: { session_id: "h1", message_id: "m1", accepted: true } });
    expect(await operator.journal.readInput("h1", "start", "m1")).not.toBeNull();
    await providers.close();
  });

  it("refuses a payload that is not a turn, and ids that differ", async () => {
    await expect(invoke("harness::trigger", { session_id: "h2", payload: { txt: "hi" } })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      field: "payload.txt",
    });
    await expect(
      invoke("harness::trigger", { session_id: "h2", payload: { session_id: "h3", text: "hi" } }),
    ).rejects.toMatchObject({ code: "INVALID_INPUT", field: "session_id" });
  });
});

describe("ui::subscribe", () => {
  it("pushes a session's events with their ids, in order, until the browser unsubscribes", async () => {
    const browser = await aBrowser("tab1");
    expect(await invoke("ui::subscribe", { browser_id: "tab1", session_id: "u1" })).toEqual({
      ok: true,
      total_browsers: 1,
    });
    await runTurn("u2", "t-other", "not for this tab");
    await runTurn("u1", "t-a", "hello");
    await until(() => browser.pushes.some(({ event }) => event.type === "agent_end"), { what: "the turn's end" });
    expect(new Set(browser.pushes.map(({ session_id }) => session_id))).toEqual(new Set(["u1"]));
    expect(browser.pushes.map(({ event }) => event.type)).toEqual([
      "turn_state_changed",
      "turn_state_changed",
      "message_update",
      "message_complete",
      "turn_end",
      "turn_state_changed",
      "agent_end",
    ]);
    expect(browser.pushes[2]).toMatchObject({
      id: expect.stringMatching(/^\d+\.1\+t-a-1-1\.0\.5$/),
      event: { delta: "hello" },
    });
    expect(await invoke("ui::unsubscribe", { browser_id: "tab1", session_id: "u1" })).toEqual({
      ok: true,
      total_browsers: 0,
    });
    await browser.leave();
  });

  it("pushes every session to a browser that named none", async () => {
    const browser = await aBrowser("tab2");
    await invoke("ui::subscribe", { browser_id: "tab2" });
    await runTurn("u3", "t-a", "one");
    await runTurn("u4", "t-b", "two");
    const ended = (sid: string) =>
      browser.pushes.some((push) => push.session_id === sid && push.event.type === "agent_end");
    await until(() => ended("u3") && ended("u4"), { what: "both turns" });
    await invoke("ui::unsubscribe", { browser_id: "tab2" });
    await browser.leave();
  });

  it("drops a browser whose function nobody offers any more", async () => {
    await invoke("ui::subscribe", { browser_id: "ghost", session_id: "u5" });
    await runTurn("u5", "t-a", "boo");
    await until(
      async () => {
        const { total_browsers: total } = (await invoke("ui::unsubscribe", { browser_id: "other" })) as {
          total_browsers: number;
        };
        return total === 0;
      },
      { what: "the ghost is gone" },
    );
  });
});
