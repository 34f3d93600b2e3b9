// assistant_streaming: one open model call, its answer, its retries, and what follows from it.
import { AssistantMessage, type OpenModelCall } from "@flotilla/contracts";
import { clip } from "../domain/clip.ts";
import { addEntry, type Draft, turnOf } from "../domain/draft.ts";
import { endStep, finishTurn } from "../domain/finish.ts";
import { chainOf, intendModelCall } from "../domain/open-turn.ts";
import { decideRetry, type RetryDecision } from "../domain/retry.ts";
import type { Asked } from "../domain/take-inputs.ts";
import { charge, estimatedUsage, pricedUsage, withUsage } from "../domain/usage.ts";
import { abortTurn, interruptModelCall } from "./abort.ts";
import type { EffectResult } from "./effect-call.ts";
import { planBatch } from "./plan-batch.ts";
import { modelSpec, providerWorker } from "./specs.ts";
import { steer } from "./steering.ts";
import type { Decision, StepContext } from "./types.ts";

const idleWaitMs = 5_000;
/** Shorter waits are inline; a longer one parks the session on a timer. */
const inlineRetryMs = 2_000;

export async function stepModel(context: StepContext, draft: Draft, asked: Asked): Promise<Decision> {
  if (asked.abort !== null) return abortTurn(context, draft, asked.abort.reason);
  if (asked.isInterrupted) return interruptModelCall(context, draft);
  const call = turnOf(draft).model_call;
  if (call === null) return steer(context, draft, { resultIds: [], hasResults: false });
  if (call.retry_at_ms !== undefined) return startParkedRetry(context, draft, call, asked);
  if (!context.effects.has(call.key))
    context.effects.ensure(await modelSpec(context, draft, call), context.isResumed(call.key));
  const result = context.effects.result(call.key);
  if (result === null) return { kind: "wait", ms: idleWaitMs };
  const reply = messageOf(draft, call, result);
  if (reply.message.stop_reason === "error") return afterFailure(context, draft, call, reply);
  return afterAnswer(context, draft, call, reply.message, reply.streamed);
}

/** The wait of a retry is over, or the session was woken early by something else. */
function startParkedRetry(context: StepContext, draft: Draft, call: OpenModelCall, asked: Asked): Decision {
  const hasFired = asked.fired.some((timer) => timer.name === retryTimer(call));
  if (!hasFired && draft.now < (call.retry_at_ms ?? 0)) return { kind: "idle" };
  draft.timers = draft.timers.filter((timer) => timer.due_at > draft.now);
  intendModelCall(draft, providerWorker(context), {
    attempt: call.attempt + 1,
    retries: call.retries + 1,
    chainIndex: call.chain_index,
  });
  return { kind: "commit" };
}

async function afterAnswer(
  context: StepContext,
  draft: Draft,
  call: OpenModelCall,
  answer: AssistantMessage,
  streamed: boolean,
): Promise<Decision> {
  const turn = turnOf(draft);
  const usage = pricedUsage(answer.usage ?? {}, await context.deps.ports.model(call.provider, call.model));
  charge(turn, usage);
  recordOutcome(draft, call, "done", usage);
  turn.model_call = null;
  draft.isSettled = true;
  const message = withUsage(answer, usage);
  const hasCalls = message.content.some((block) => block.type === "function_call");
  if (hasCalls) return planBatch(context, draft, { message, messageId: call.message_id, streamed });
  addEntry(draft, call.message_id, message);
  turn.assistant_entry_id = call.message_id;
  draft.events.push({
    type: "message_complete",
    message_id: call.message_id,
    entry_id: call.message_id,
    body_streamed: streamed,
  });
  return steer(context, draft, { resultIds: [], hasResults: false });
}

interface Reply {
  readonly message: AssistantMessage;
  readonly streamed: boolean;
  /** A client may have seen a part of it. */
  readonly framed: boolean;
  readonly isLost: boolean;
}

async function afterFailure(
  context: StepContext,
  draft: Draft,
  call: OpenModelCall,
  failure: Reply,
): Promise<Decision> {
  const { config } = context.deps;
  const turn = turnOf(draft);
  const policy = {
    retries: config.FLOTILLA_MODEL_RETRIES,
    baseMs: config.FLOTILLA_RETRY_BASE_MS,
    maxMs: config.FLOTILLA_RETRY_MAX_MS,
  };
  const decision = decideRetry(failure.message, call, chainOf(turn.request).length, policy, context.deps.random());
  const due = context.retryDue(call.key, () => draft.now + (decision.kind === "retry" ? decision.delayMs : 0));
  const waitMs = due - draft.now;
  if (decision.kind === "retry" && waitMs > 0 && waitMs <= inlineRetryMs) return { kind: "wait", ms: waitMs };
  const usage = await usageOfFailure(context, draft, call, failure);
  charge(turn, usage);
  recordOutcome(draft, call, failure.isLost ? "unknown" : "failed", usage);
  if (decision.kind === "give_up") return giveUp(draft, call, failure, usage);
  if (failure.framed) {
    draft.events.push({
      type: "message_aborted",
      message_id: call.message_id,
      reason: clip(failure.message.error_message ?? "the model call failed"),
    });
  }
  draft.isSettled = true;
  if (decision.kind === "retry" && waitMs > inlineRetryMs) return parkForRetry(context, draft, call, due);
  const next = nextAttempt(call, decision);
  intendModelCall(draft, providerWorker(context), next);
  return { kind: "commit" };
}

function nextAttempt(
  call: OpenModelCall,
  decision: RetryDecision,
): { attempt: number; retries: number; chainIndex: number } {
  if (decision.kind === "failover") return { attempt: call.attempt + 1, retries: 0, chainIndex: decision.chainIndex };
  return { attempt: call.attempt + 1, retries: call.retries + 1, chainIndex: call.chain_index };
}

function retryTimer(call: OpenModelCall): string {
  return `retry-${call.message_id}`;
}

/** Armed before the idle commit, so that no crash can lose the wake. */
async function parkForRetry(context: StepContext, draft: Draft, call: OpenModelCall, due: number): Promise<Decision> {
  const turn = turnOf(draft);
  const timer = { name: retryTimer(call), due_at: due };
  await context.deps.ports.armTimer(turn.session_id, timer);
  draft.timers.push(timer);
  turn.model_call = { ...call, retry_at_ms: due };
  return { kind: "idle" };
}

/** The failure is part of the transcript; the next turn of the session works. */
function giveUp(draft: Draft, call: OpenModelCall, failure: Reply, usage: AssistantMessage["usage"]): Decision {
  const turn = turnOf(draft);
  const kind = failure.message.error_kind ?? "transient";
  const text = failure.message.error_message ?? "the model call failed";
  const content = failure.message.content.filter((block) => block.type !== "function_call");
  const message: AssistantMessage = {
    ...failure.message,
    content,
    error_kind: kind,
    error_message: text,
    usage: usage ?? null,
  };
  addEntry(draft, call.message_id, message);
  turn.assistant_entry_id = call.message_id;
  const isStreamed = failure.streamed && content.length > 0;
  draft.events.push({
    type: "message_complete",
    message_id: call.message_id,
    entry_id: call.message_id,
    body_streamed: isStreamed,
  });
  endStep(draft, []);
  finishTurn(draft, "error", { kind: "provider_error", code: codeOf(kind), message: text, error_kind: kind });
  return { kind: "idle" };
}

function codeOf(kind: NonNullable<AssistantMessage["error_kind"]>): string {
  if (kind === "auth_expired") return "PROVIDER_AUTH";
  return kind === "transient" || kind === "rate_limited" ? "PROVIDER_TRANSIENT" : "PROVIDER_PERMANENT";
}

function recordOutcome(
  draft: Draft,
  call: OpenModelCall,
  status: "done" | "failed" | "unknown",
  usage: NonNullable<AssistantMessage["usage"]>,
): void {
  draft.ledger.push({
    kind: "outcome",
    key: call.key,
    call_id: null,
    function_id: call.function_id,
    status,
    is_error: status !== "done",
    duration_ms: Math.max(0, draft.now - call.started_at_ms),
    usage,
    at: draft.now,
  });
}

async function usageOfFailure(
  context: StepContext,
  draft: Draft,
  call: OpenModelCall,
  failure: Reply,
): Promise<NonNullable<AssistantMessage["usage"]>> {
  const model = await context.deps.ports.model(call.provider, call.model);
  if (!failure.isLost) return pricedUsage(failure.message.usage ?? {}, model);
  const spec = await modelSpec(context, draft, call);
  return estimatedUsage(JSON.stringify(spec.payload).length, model);
}

/** The provider's answer as a message; a call that failed on the way becomes a message with stop_reason `error`. */
export function messageOf(draft: Draft, call: OpenModelCall, result: EffectResult): Reply {
  const failure = (text: string, kind: NonNullable<AssistantMessage["error_kind"]>, isLost: boolean) => ({
    message: errorMessage(call, text, kind, draft.now),
    streamed: isLost,
    framed: isLost,
    isLost,
  });
  if (result.kind === "done") return messageOfReply(call, result.result, draft.now);
  if (result.kind === "unknown") return failure("the provider worker died during the call", "transient", true);
  if (result.kind === "in_flight")
    return failure(`the model call gave no answer: ${result.error.message}`, "transient", true);
  const { error } = result;
  const isTransient =
    error.code === "WORKER_UNAVAILABLE" ||
    error.code === "TIMEOUT" ||
    error.code === "SHUTTING_DOWN" ||
    error.code === "BUS_UNAVAILABLE" ||
    error.code === "CANCELLED" ||
    error.code === "INTERNAL";
  return failure(`${error.code}: ${error.message}`, isTransient ? "transient" : "permanent", false);
}

function messageOfReply(call: OpenModelCall, reply: unknown, now: number): Reply {
  const body = reply as { message?: unknown; streamed?: unknown; framed?: unknown } | null;
  const parsed = AssistantMessage.safeParse(body?.message);
  if (!parsed.success) {
    return {
      message: errorMessage(call, "the provider's answer could not be read", "permanent", now),
      streamed: body?.streamed === true,
      framed: body?.framed === true || body?.streamed === true,
      isLost: false,
    };
  }
  const message =
    parsed.data.stop_reason === "aborted"
      ? {
          ...parsed.data,
          stop_reason: "error" as const,
          error_kind: "transient" as const,
          error_message: "the model call was cut off",
        }
      : parsed.data;
  const streamed = body?.streamed === true;
  return { message, streamed, framed: streamed || body?.framed === true, isLost: false };
}

function errorMessage(
  call: OpenModelCall,
  text: string,
  kind: NonNullable<AssistantMessage["error_kind"]>,
  now: number,
): AssistantMessage {
  return {
    role: "assistant",
    content: [],
    stop_reason: "error",
    error_message: text,
    error_kind: kind,
    usage: null,
    model: call.model,
    provider: call.provider,
    timestamp: now,
  };
}
