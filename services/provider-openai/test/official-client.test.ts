// The vendor's own client reads the same streams and finds the same: text, calls, usage and the reason to stop.
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as build from "../../../test/upstream/chat-chunks.ts";
import { scenarios, upstream } from "../../../test/upstream/load.ts";
import { play, withScenarios } from "../../../test/upstream/play.ts";
import type { Scenario, ScenarioReply, Upstream } from "../../../test/upstream/upstream.mjs";
import { definition } from "../src/worker.ts";

const handedOut = scenarios.scenarios.filter((scenario) => scenario.provider === "openai" && scenario.normal === true);
const template = handedOut[0] as Scenario;
const envelope = template.reply?.envelope ?? {};
const own = (name: string, reply: ScenarioReply): Scenario => ({
  ...template,
  name,
  call: { ...template.call, messages: [{ role: "user", content: [{ type: "text", text: `scenario:${name}` }] }] },
  reply: { envelope, ...reply },
});
const { delta, text, call, finish, usage } = build;
const more = [
  own("own-two-calls", {
    events: [
      delta({ role: "assistant", content: "" }),
      ...text("Both 東京 🌍. "),
      ...call(0, "call_a", '{"city":', '"Oslo"}'),
      ...call(1, "call_b", "{}"),
      finish("tool_calls"),
      usage(100, 30, {
        total_tokens: 130,
        prompt_tokens_details: { cached_tokens: 64 },
        completion_tokens_details: { reasoning_tokens: 9 },
      }),
    ],
    escapeNonAscii: true,
  }),
  own("own-cut-by-limit", {
    events: [delta({ role: "assistant", content: "" }), ...text("And", " so"), finish("length"), usage(5, 2)],
    eol: "\r\n",
  }),
  own("own-odd-spelling", {
    events: [delta({ role: "assistant", content: "" }), ...text("Fine."), finish("stop"), usage(5, 2)],
    space: false,
    multiline: true,
  }),
];
const all = [...handedOut, ...more];

let server: Upstream;
beforeAll(async () => {
  server = await upstream.startUpstream({ scenarios: withScenarios(scenarios, more) });
});
afterAll(() => server.close());

const reasons: Readonly<Record<string, string>> = { stop: "end", length: "length", tool_calls: "function_call" };

async function byOfficialClient(scenario: Scenario) {
  const client = new OpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: "test-key", maxRetries: 0 });
  const tools = (
    scenario.call.tools as { name: string; description: string; parameters: Record<string, unknown> }[]
  ).map((tool) => ({
    type: "function" as const,
    function: tool,
  }));
  const completion = await client.chat.completions
    .stream({
      model: scenario.call.model,
      tools,
      messages: [{ role: "user", content: `scenario:${scenario.name}` }],
      stream_options: { include_usage: true },
    })
    .finalChatCompletion();
  const choice = completion.choices[0];
  const calls = (choice?.message.tool_calls ?? []).flatMap((made) =>
    made.type === "function"
      ? [{ id: made.id, function_id: made.function.name, arguments: JSON.parse(made.function.arguments) }]
      : [],
  );
  const cached = completion.usage?.prompt_tokens_details?.cached_tokens ?? 0;
  return {
    text: choice?.message.content ?? "",
    calls,
    // The client repeats the vendor's word; with a call in it, the answer is a call.
    stop_reason: calls.length > 0 ? "function_call" : reasons[choice?.finish_reason ?? ""],
    input: (completion.usage?.prompt_tokens ?? 0) - cached,
    cache_read: cached,
    output: completion.usage?.completion_tokens,
  };
}

async function byUs(scenario: Scenario) {
  const { message } = await play(scenario.call, {
    definition,
    functionId: "provider::openai::stream",
    env: { OPENAI_BASE_URL: `${server.url}/openai` },
    catalog: scenarios.catalog,
  });
  const calls = message.content.flatMap((block) =>
    block.type === "function_call"
      ? [{ id: block.id, function_id: block.function_id, arguments: block.arguments }]
      : [],
  );
  return {
    text: message.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    calls,
    stop_reason: message.stop_reason,
    input: message.usage?.input,
    cache_read: message.usage?.cache_read,
    output: message.usage?.output,
  };
}

describe("openai", () => {
  it.each(all.map((scenario) => [scenario.name, scenario] as const))("agrees on %s", async (_, scenario) => {
    expect(await byUs(scenario)).toEqual(await byOfficialClient(scenario));
  });
});
