// What the makers of spans share: ids as attributes, notes on the span that runs, and a turn's trace as text.
import { createHash } from "node:crypto";
import type { AssistantMessage } from "@flotilla/contracts";
import { type Attributes, type Context, context, SpanStatusCode, trace } from "@opentelemetry/api";
import { attributeNames } from "./names.ts";
import { type CallIds, injectContext } from "./propagation.ts";

const idAttributes = {
  sessionId: attributeNames.sessionId,
  messageId: attributeNames.messageId,
  workspaceId: attributeNames.workspaceId,
  turnId: attributeNames.turnId,
  callId: attributeNames.callId,
} as const satisfies Partial<Record<keyof CallIds, string>>;

/** The known ones of the ids, as a span carries them. */
export function idAttributesOf(ids: CallIds): Attributes {
  const attributes: Attributes = {};
  for (const name of Object.keys(idAttributes) as (keyof typeof idAttributes)[]) {
    if (ids[name] !== undefined) attributes[idAttributes[name]] = ids[name];
  }
  return attributes;
}

/** Notes ids on the span that runs, once they are known. */
export function noteIds(ids: CallIds): void {
  trace.getActiveSpan()?.setAttributes(idAttributesOf(ids));
}

/** The trace context as a W3C `traceparent`; null outside of any trace. */
export function traceparentOf(source: Context = context.active()): string | null {
  const headers = new Map<string, string>();
  injectContext(headers, {}, source);
  return headers.get("traceparent") ?? null;
}

/** The trace of a turn that was started outside of any: the same for each of its owners. */
export function derivedTraceparent(turnId: string): string {
  const digest = createHash("sha256").update(turnId).digest("hex");
  return `00-${digest.slice(0, 32)}-${digest.slice(32, 48)}-01`;
}

/** Notes on the span that runs what its provider knows of a model call: names and counts, no text (I13). */
export function noteModelCall(message: AssistantMessage): void {
  const span = trace.getActiveSpan();
  if (span?.isRecording() !== true) return;
  const { input, output } = message.usage ?? {};
  span.setAttributes({
    [attributeNames.genAiOperation]: "chat",
    [attributeNames.genAiSystem]: message.provider,
    [attributeNames.genAiRequestModel]: message.model,
    [attributeNames.genAiFinishReasons]: [message.stop_reason],
    ...(input === undefined ? {} : { [attributeNames.genAiInputTokens]: input }),
    ...(output === undefined ? {} : { [attributeNames.genAiOutputTokens]: output }),
  });
  if (message.stop_reason !== "error") return;
  const kind = message.error_kind ?? "unknown";
  span.setAttribute(attributeNames.errorType, kind);
  span.setStatus({ code: SpanStatusCode.ERROR, message: kind });
}
