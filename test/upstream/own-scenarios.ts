// Scenarios that are written in a test: a reply, played by the fake upstream to a worker, and what came of it.
import type { WorkerDefinition } from "@flotilla/worker";
import { scenarios, upstream } from "./load.ts";
import { type Played, type PlayOptions, play, withScenarios } from "./play.ts";
import type { Scenario, ScenarioReply, UpstreamRequest } from "./upstream.mjs";

export interface OwnScenario {
  readonly api: "anthropic" | "openai";
  readonly provider: string;
  readonly model: string;
  readonly definition: WorkerDefinition;
  readonly env: (url: string) => Record<string, string>;
}

export interface Outcome extends Played {
  readonly requests: readonly UpstreamRequest[];
}

const tools = [
  {
    name: "get_weather",
    description: "Weather of a place.",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
  { name: "get_time", description: "The time now.", parameters: { type: "object", properties: {} } },
];

export interface OwnCall extends Partial<PlayOptions> {
  /** One reply, or one for each attempt. */
  readonly replies: readonly ScenarioReply[];
  /** Fields of the provider request. */
  readonly call?: Record<string, unknown>;
  readonly complete?: boolean;
}

const marker = { role: "user", content: [{ type: "text", text: "scenario:own" }] };

/** Every reply runs on an upstream of its own. The first user message is put in front of `call.messages`. */
export async function playOwn(
  own: OwnScenario,
  { replies, call = {}, complete, ...options }: OwnCall,
): Promise<Outcome> {
  const { messages = [], ...fields } = call;
  const whole = {
    provider: own.provider,
    model: own.model,
    tools,
    ...fields,
    messages: [marker, ...(messages as unknown[])],
  };
  const scenario = {
    name: "own",
    kind: "response",
    api: own.api,
    provider: own.provider,
    about: "",
    call: whole,
    replies,
  } as Scenario;
  const server = await upstream.startUpstream({ scenarios: withScenarios(scenarios, [scenario]) });
  try {
    const played = await play(whole, {
      definition: own.definition,
      functionId: `provider::${own.provider}::${complete ? "complete" : "stream"}`,
      env: own.env(server.url),
      catalog: scenarios.catalog,
      ...options,
    });
    return { ...played, requests: server.requests() };
  } finally {
    await server.close();
  }
}
