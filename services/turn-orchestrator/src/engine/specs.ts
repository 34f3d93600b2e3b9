// The requests of a turn's model calls and tool calls, made from the journal alone so that any owner makes the same.
import {
  type AgentMessage,
  argumentsOf,
  type CallRecord,
  messagesOf,
  type OpenModelCall,
  type ProviderRequest,
} from "@flotilla/contracts";
import { isPlainObject } from "../domain/batch.ts";
import { type Draft, turnOf } from "../domain/draft.ts";
import { offeredTools, systemPrompt } from "../domain/prompt.ts";
import type { EffectSpec } from "./effect-call.ts";
import type { StepContext } from "./types.ts";

export async function modelSpec(context: StepContext, draft: Draft, call: OpenModelCall): Promise<EffectSpec> {
  const { deps, view } = context;
  const turn = turnOf(draft);
  const functions = deps.bus.registry.functions().map((route) => route.fn);
  const payload: ProviderRequest = {
    session_id: turn.session_id,
    turn_id: turn.turn_id,
    message_id: call.message_id,
    model: call.model,
    messages: messagesOf(view).map(({ message }) => message as AgentMessage),
    tools: offeredTools(turn.request, functions),
    system_prompt: systemPrompt(turn.request),
    thinking_level: turn.request.thinking_level,
    model_meta: await deps.ports.model(call.provider, call.model),
  };
  return {
    ...common(context, draft),
    key: call.key,
    worker: call.worker,
    functionId: call.function_id,
    payload,
    replay: "never",
    timeoutMs: deps.config.FLOTILLA_MODEL_TIMEOUT_MS,
    attempt: call.attempt,
    callId: undefined,
    messageId: turn.message_id,
    intendedAt: call.started_at_ms,
  };
}

/** An allowed call runs with exactly the arguments of its digest: those of the transcript. */
export function toolSpec(context: StepContext, draft: Draft, call: CallRecord): EffectSpec {
  const turn = turnOf(draft);
  const args = argumentsOf(context.view, call.id);
  return {
    ...common(context, draft),
    key: call.key ?? "",
    worker: call.worker ?? "",
    functionId: call.function_id,
    payload: isPlainObject(args) ? args : {},
    replay: call.replay ?? "never",
    timeoutMs: call.timeout_ms ?? 30_000,
    attempt: call.attempt,
    callId: call.id,
    messageId: turn.message_id,
    intendedAt: call.started_at_ms ?? 0,
  };
}

function common(context: StepContext, draft: Draft): Pick<EffectSpec, "sessionId" | "turnId" | "workspace" | "epoch"> {
  const turn = turnOf(draft);
  return { sessionId: turn.session_id, turnId: turn.turn_id, workspace: turn.workspace, epoch: context.epoch };
}

export function providerWorker(context: StepContext): (provider: string) => string {
  return (provider) =>
    context.deps.bus.registry.resolve(`provider::${provider}::stream`)?.worker ?? `provider-${provider}`;
}
