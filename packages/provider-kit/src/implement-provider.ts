// `provider::<name>::stream` and `::complete`: everything of a model call that is not a vendor's wire. Never throws after the start.
import type { Bus } from "@flotilla/bus";
import {
  type AssistantMessage,
  authGetToken,
  type Credential,
  modelsGet,
  providerComplete,
  providerStream,
  randomId,
  type Usage,
} from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { noteModelCall } from "@flotilla/telemetry";
import { type HandlerContext, type Implementation, implementPrepared } from "@flotilla/worker";
import { type Answer, createAnswer } from "./answer.ts";
import { missingCredential, withoutSecret } from "./credential.ts";
import { type Failure, ProviderFailure, permanent, transient } from "./failure.ts";
import { createFrameEmitter, type FrameBus } from "./frame-emitter.ts";
import { type TokenCounts, usageOf } from "./pricing.ts";
import type { Ending, ModelMeta, ModelRequest, StreamCall } from "./provider-call.ts";
import { createToolNames } from "./tool-names.ts";

export interface ProviderOptions {
  /** Namespace part of the function ids, and the provider in messages. */
  readonly name: string;
  /** Named to the reader when there is no credential. */
  readonly credentialVariable: string;
  readonly bus: FrameBus | Bus;
  readonly streamCall: StreamCall;
  /** Most output tokens when neither the request nor the catalog says. @default 8192 */
  readonly defaultMaxTokens?: number;
  /** Upper bound on what is asked for by default. @default 32000 */
  readonly maxTokensCap?: number;
  /** @default Date.now */
  readonly now?: () => number;
}

export function implementProvider(options: ProviderOptions): Implementation[] {
  const credential = (context: HandlerContext) => credentialOf(options, context);
  return [
    implementPrepared(providerStream(options.name), credential, (context, request, prepared) =>
      answerCall(options, context, { request, credential: prepared, streams: true }),
    ),
    implementPrepared(providerComplete(options.name), credential, (context, request, prepared) =>
      answerCall(options, context, { request, credential: prepared, streams: false }),
    ),
  ];
}

type Outcome = { readonly ending: Ending } | { readonly failure: Failure } | { readonly isAborted: true };

interface Asked {
  readonly request: ModelRequest;
  readonly credential: Promise<Credential>;
  readonly streams: boolean;
}

async function answerCall(options: ProviderOptions, context: HandlerContext, asked: Asked) {
  const { request, streams } = asked;
  const now = options.now ?? Date.now;
  const frames = createFrameEmitter({
    bus: options.bus,
    logger: context.logger,
    sessionId: streams ? request.session_id : undefined,
    messageId: request.message_id,
    turnId: request.turn_id ?? context.turnId,
  });
  const names = createToolNames(request.tools.map((tool) => tool.name));
  const answer = createAnswer({ frames, names, newCallId: () => `call_${randomId()}` });
  let counts: TokenCounts | null = null;
  let model: ModelMeta | null = request.model_meta ?? null;
  let credential: Credential | null = null;
  const run = async (): Promise<Ending> => {
    credential = await asked.credential;
    model ??= await modelOf(options, context, request.model);
    return await options.streamCall({
      request,
      credential,
      model,
      maxTokens: maxTokensOf(options, request, model),
      names,
      answer,
      signal: context.signal,
      logger: context.logger,
      now,
      reportUsage: (reported) => {
        counts = reported;
      },
    });
  };
  const outcome = await run().then(
    (ending): Outcome => ({ ending }),
    (error): Outcome => outcomeOf(error, context, options.name, credential),
  );
  const usage = counts === null ? null : usageOf(counts, (model as ModelMeta | null)?.pricing);
  const message = messageOf(outcome, answer, { provider: options.name, model: request.model, usage, now: now() });
  noteModelCall(message);
  await frames.flush();
  return { message, streamed: frames.streamed, framed: frames.framed };
}

async function credentialOf(options: ProviderOptions, context: HandlerContext): Promise<Credential> {
  const credential = await context.call(authGetToken, { provider: options.name });
  if (credential === null) throw missingCredential(options.name, options.credentialVariable);
  return credential;
}

/** Prices and limits are good to have; a call does not fail for want of them. */
async function modelOf(options: ProviderOptions, context: HandlerContext, id: string): Promise<ModelMeta | null> {
  try {
    return await context.call(modelsGet, { provider: options.name, model_id: id }, { timeoutMs: 2_000 });
  } catch (error) {
    context.logger.warn("the models catalog gave no answer; the call goes on without prices", {
      model: id,
      error: error instanceof Error ? error.message : String(error),
    });
    return null;
  }
}

function maxTokensOf(options: ProviderOptions, request: ModelRequest, model: ModelMeta | null): number {
  const known = model?.max_output_tokens;
  const most = Math.min(request.max_tokens ?? options.maxTokensCap ?? 32_000, known ?? Number.POSITIVE_INFINITY);
  return request.max_tokens === undefined && known === undefined ? (options.defaultMaxTokens ?? 8_192) : most;
}

function outcomeOf(error: unknown, context: HandlerContext, provider: string, credential: Credential | null): Outcome {
  if (context.signal.aborted) return { isAborted: true };
  const clean = (failure: Failure): Outcome => ({
    failure: { ...failure, message: withoutSecret(failure.message, credential) },
  });
  if (error instanceof ProviderFailure) return clean(error.failure);
  if (error instanceof FlotillaError) {
    const text = `${error.code}: ${error.message}`;
    return clean((error.disposition === "retry" ? transient(text) : permanent(text)).failure);
  }
  // A defect of ours: its words stay in the log.
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  context.logger.error("a model call failed in a way that was not foreseen", {
    provider,
    error: withoutSecret(text, credential),
  });
  return clean(permanent(`INTERNAL: the ${provider} worker failed`).failure);
}

function messageOf(
  outcome: Outcome,
  answer: Answer,
  facts: { readonly provider: string; readonly model: string; readonly usage: Usage | null; readonly now: number },
): AssistantMessage {
  const base = {
    role: "assistant" as const,
    error_message: null,
    error_kind: null,
    usage: facts.usage,
    model: facts.model,
    provider: facts.provider,
    timestamp: facts.now,
  };
  if ("isAborted" in outcome) return { ...base, content: answer.content("none"), stop_reason: "aborted" };
  if ("failure" in outcome) {
    const { kind, message, retryAfterMs } = outcome.failure;
    return {
      ...base,
      content: answer.content("none"),
      stop_reason: "error",
      error_kind: kind,
      error_message: message,
      ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
    };
  }
  // A complete call is run whatever reason came with it; a cut one is not.
  const content = answer.content(outcome.ending === "length" ? "whole" : "all");
  const hasCalls = content.some((block) => block.type === "function_call");
  return { ...base, content, stop_reason: hasCalls ? "function_call" : outcome.ending };
}
