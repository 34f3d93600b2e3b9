// The final message of a scripted call: content, ending, usage and its price. Pure.
import { type AssistantMessage, costMicrousd, type Usage } from "@flotilla/contracts";
import type { ModelRequest } from "@flotilla/provider-kit";
import type { AnswerBuilder } from "./answer-builder.ts";
import type { Ending } from "./perform.ts";
import type { Step } from "./script.ts";

/** Those of the catalog's rows, for a caller that sends none. */
const scriptedPricing = { input_per_1m: 1, output_per_1m: 2 };

export interface FinalParts {
  readonly request: ModelRequest;
  readonly steps: readonly Step[];
  readonly answer: AnswerBuilder;
  readonly ending: Ending;
  readonly now: number;
}

export function finalMessage(parts: FinalParts): AssistantMessage {
  const { request, answer, ending } = parts;
  const base = {
    role: "assistant" as const,
    error_message: null,
    error_kind: null,
    usage: usageOf(parts),
    model: request.model,
    provider: "scripted",
    timestamp: parts.now,
  };
  if (ending.kind === "end") {
    return { ...base, content: answer.content, stop_reason: answer.hasCalls ? "function_call" : "end" };
  }
  // Calls of an answer that did not come to its end are not to be run.
  const content = answer.content.filter((block) => block.type !== "function_call");
  if (ending.kind === "aborted") return { ...base, content, stop_reason: "aborted" };
  return {
    ...base,
    content,
    stop_reason: "error",
    error_kind: ending.errorKind,
    error_message: ending.message,
  };
}

/** What a `usage` line states; else of what was asked and said. A failed call states what it used or nothing. */
function usageOf({ request, steps, answer, ending }: FinalParts): Usage | null {
  const stated = steps.findLast((step) => step.kind === "usage");
  if (stated === undefined && ending.kind === "failed") return null;
  const tokens = {
    input: stated?.input ?? Math.ceil(charactersOf(request) / 4),
    output: stated?.output ?? answer.words,
  };
  const cost = costMicrousd(tokens, request.model_meta?.pricing ?? scriptedPricing);
  return { ...tokens, cost_microusd: cost, cost_usd: cost / 1_000_000 };
}

function charactersOf({ system_prompt, messages, tools }: ModelRequest): number {
  return (system_prompt ?? "").length + JSON.stringify(messages).length + JSON.stringify(tools).length;
}
