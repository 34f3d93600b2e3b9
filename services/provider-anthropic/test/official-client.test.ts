// The vendor's own client reads the same streams and finds the same: text, thinking, calls, usage and the reason to stop.
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scenarios, upstream } from "../../../test/upstream/load.ts";
import * as build from "../../../test/upstream/messages-events.ts";
import { play, withScenarios } from "../../../test/upstream/play.ts";
import type { Scenario, ScenarioReply, Upstream } from "../../../test/upstream/upstream.mjs";
import { definition } from "../src/worker.ts";

const handedOut = scenarios.scenarios.filter(
  (scenario) => scenario.provider === "anthropic" && scenario.normal === true,
);
const template = handedOut[0] as Scenario;
const own = (name: string, reply: ScenarioReply): Scenario => ({
  ...template,
  name,
  call: { ...template.call, messages: [{ role: "user", content: [{ type: "text", text: `scenario:${name}` }] }] },
  reply,
});
const { start, open, close, delta, textDelta, jsonDelta, text, call, end } = build;
const more = [
  own("own-side-by-side", {
    events: [
      start(),
      open(0, { type: "text", text: "" }),
      open(1, { type: "tool_use", id: "toolu_1", name: "{{tool:0}}", input: {} }),
      jsonDelta(1, '{"city":"Ber'),
      textDelta(0, "Ber"),
      jsonDelta(1, 'gen 🌧"}'),
      textDelta(0, "gen 🌧"),
      close(0),
      close(1),
      ...end("tool_use", { output_tokens: 33 }),
    ],
    escapeNonAscii: true,
  }),
  own("own-thinking", {
    events: [
      start({ input_tokens: 7, cache_read_input_tokens: 5, output_tokens: 1 }),
      open(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "thinking_delta", thinking: "Hm" }),
      delta(0, { type: "signature_delta", signature: "EqOne0000000==" }),
      close(0),
      open(1, { type: "redacted_thinking", data: "b3BhcXVl" }),
      close(1),
      ...text(2, "So", "."),
      ...end("stop_sequence", { output_tokens: 12 }),
    ],
    eol: "\r\n",
  }),
  own("own-cut-by-limit", {
    events: [start(), ...text(0, "And so"), ...end("max_tokens")],
    multiline: true,
    bom: true,
  }),
  own("own-two-calls", {
    events: [start(), ...call(0, "a", '{"city":"', 'Oslo"}'), ...call(1, "b"), ...end("tool_use")],
    space: false,
  }),
];
const all = [...handedOut, ...more];

let server: Upstream;
beforeAll(async () => {
  server = await upstream.startUpstream({ scenarios: withScenarios(scenarios, more) });
});
afterAll(() => server.close());

const reasons: Readonly<Record<string, string>> = {
  end_turn: "end",
  stop_sequence: "end",
  max_tokens: "length",
  tool_use: "function_call",
};

async function byOfficialClient(scenario: Scenario) {
  const client = new Anthropic({ baseURL: server.url, apiKey: "test-key", maxRetries: 0 });
  const tools = (
    scenario.call.tools as { name: string; description: string; parameters: Anthropic.Tool.InputSchema }[]
  ).map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
  const message = await client.messages
    .stream({
      model: scenario.call.model,
      max_tokens: 1_000,
      tools,
      messages: [{ role: "user", content: `scenario:${scenario.name}` }],
    })
    .finalMessage();
  const content = message.content.map((block) => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "thinking") return { type: "thinking", text: block.thinking, signature: block.signature };
    if (block.type === "redacted_thinking") return { type: "thinking", text: "", redacted: block.data };
    return block.type === "tool_use"
      ? {
          type: "function_call",
          id: block.id,
          provider_call_id: block.id,
          function_id: block.name,
          arguments: block.input,
        }
      : block;
  });
  const { usage } = message;
  return {
    content,
    stop_reason: reasons[message.stop_reason ?? ""],
    input: usage.input_tokens,
    output: usage.output_tokens,
    cache_read: usage.cache_read_input_tokens ?? 0,
    cache_write: usage.cache_creation_input_tokens ?? 0,
  };
}

async function byUs(scenario: Scenario) {
  const { message } = await play(scenario.call, {
    definition,
    functionId: "provider::anthropic::stream",
    env: { ANTHROPIC_BASE_URL: server.url },
    catalog: scenarios.catalog,
  });
  const { input, output, cache_read, cache_write } = message.usage ?? {};
  return { content: message.content, stop_reason: message.stop_reason, input, output, cache_read, cache_write };
}

describe("@anthropic-ai/sdk", () => {
  it.each(all.map((scenario) => [scenario.name, scenario] as const))("agrees on %s", async (_, scenario) => {
    expect(await byUs(scenario)).toEqual(await byOfficialClient(scenario));
  });
});
