// Both provider workers on a real bus, against the fake upstream: frames, stored frames, the answer, and a cancelled call.
import { authGetToken, modelsGet, providerStream, subjects, type TokenFrame } from "@flotilla/contracts";
import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { defineWorker, implement, type WorkerDefinition } from "@flotilla/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scenarios, upstream } from "../upstream/load.ts";
import type { Upstream } from "../upstream/upstream.mjs";

const keys: WorkerDefinition = {
  name: "auth-credentials",
  build: () =>
    defineWorker({
      name: "auth-credentials",
      version: "0.1.0",
      functions: [implement(authGetToken, () => ({ type: "api_key" as const, key: "test-key-0123456789" }))],
      background: [],
    }),
};
const catalog: WorkerDefinition = {
  name: "models-catalog",
  build: () =>
    defineWorker({
      name: "models-catalog",
      version: "0.1.0",
      functions: [
        implement(modelsGet, (_, { model_id }) => {
          const entry = scenarios.catalog.find(({ id }) => id === model_id);
          return entry === undefined ? null : { api: "x", display_name: entry.id, ...entry, pricing: pricingOf(entry) };
        }),
      ],
      background: [],
    }),
};
const pricingOf = (entry: { pricing: Record<string, number> }) => ({
  input_per_1m: entry.pricing.input_per_1m ?? 0,
  output_per_1m: entry.pricing.output_per_1m ?? 0,
});

let server: Upstream;
let fleet: StartedFleet;
beforeAll(async () => {
  server = await upstream.startUpstream();
  fleet = await startFleet({
    workers: ["provider-anthropic", "provider-openai"],
    definitions: [keys, catalog],
    env: { ANTHROPIC_BASE_URL: server.url, OPENAI_BASE_URL: `${server.url}/openai` },
  });
});
afterAll(async () => {
  await fleet?.stop();
  await server?.close();
});

function requestFor(name: string) {
  const call = scenarios.byName.get(name)?.call;
  if (call === undefined) throw new Error(`no scenario ${name}`);
  const ids = { session_id: `s-${name}`, turn_id: "t-1", message_id: `m-${name}` };
  return { ...ids, model: call.model, messages: call.messages as never, tools: call.tools as never };
}

function watchTokens(sessionId: string) {
  const frames: TokenFrame[] = [];
  const subscription = fleet.bus.nc.subscribe(subjects.tokens(sessionId), {
    callback: (_, message) => {
      frames.push(message.json<TokenFrame>());
    },
  });
  return { frames, stop: () => subscription.unsubscribe() };
}

const joined = (frames: readonly TokenFrame[]): string => frames.map(({ text }) => text).join("");

describe("a provider on the bus", () => {
  it.each([
    ["anthropic", "an-text-basic", 255],
    ["openai", "oa-text-basic", 130],
  ])("%s streams, stores what it streamed before it answers, and prices the answer", async (provider, name, cost) => {
    const request = requestFor(name);
    const { frames, stop } = watchTokens(request.session_id);
    await fleet.bus.nc.flush();
    const reply = await fleet.bus.call(providerStream(provider), request);
    const stored = await fleet.bus.deltas.read(request.session_id, request.message_id);
    expect(reply).toMatchObject({
      streamed: true,
      message: {
        stop_reason: "end",
        content: [{ type: "text", text: "Hello, world." }],
        usage: { cost_microusd: cost },
      },
    });
    expect(joined(stored)).toBe("Hello, world.");
    await until(() => joined(frames) === "Hello, world.", {
      timeoutMs: 2_000,
      what: "the frames on the token subject",
    });
    stop();
  });

  it("answers what there is when it is cancelled, and lets go of the vendor (I14)", async () => {
    const request = requestFor("an-abort");
    const { frames, stop } = watchTokens(request.session_id);
    await fleet.bus.nc.flush();
    const key = "provider-anthropic.s-an-abort.t-1.1.m0.1";
    const answer = fleet.bus.call(providerStream("anthropic"), request, {
      idempotencyKey: key,
      epoch: 1,
      sessionId: request.session_id,
    });
    await until(() => frames.length > 0, { timeoutMs: 5_000, what: "the first frame" });
    fleet.bus.nc.publish(subjects.cancel("provider-anthropic", key), JSON.stringify({ reason: "stop", epoch: 1 }));
    const { message } = (await answer) as { message: { stop_reason: string; content: { text: string }[] } };
    expect(message.stop_reason).toBe("aborted");
    expect(message.content[0]?.text).toMatch(/^word0 /);
    const isClosed = () => server.requests().at(-1)?.closed_early === true;
    await until(isClosed, { timeoutMs: 2_000, what: "the upstream to see the connection close" });
    stop();
  });
});
