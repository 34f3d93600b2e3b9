// The results a call gets when no function answered it, and how an answer becomes a result (contracts.md 4.6). Pure.
import { ContentBlock, type DenialEnvelope, type FunctionResult } from "@flotilla/contracts";
import type { ErrorBody } from "@flotilla/errors";

export interface Settled {
  readonly status: "done" | "failed" | "cancelled" | "unknown" | "not_run";
  readonly result: FunctionResult;
  readonly isError: boolean;
}

function textResult(text: string, details: unknown): FunctionResult {
  return { content: [{ type: "text", text }], details };
}

function errorResult(
  status: Settled["status"],
  details: Record<string, unknown>,
  text = JSON.stringify(details),
): Settled {
  return { status, result: textResult(text, details), isError: true };
}

export function functionNotFound(functionId: string): Settled {
  const hint =
    "No worker offers this function. Function ids look like namespace::name; use only ids that were listed to you.";
  return errorResult("not_run", { error: "function_not_found", function: functionId, hint });
}

export function missingFunction(): Settled {
  const message = "agent_trigger needs {function: <id>, payload: {…}}";
  return errorResult("not_run", { error: "missing_function", message });
}

export function invalidArguments(functionId: string): Settled {
  const message = `The arguments of ${functionId} must be one JSON object; the function was not run.`;
  return errorResult("not_run", { error: "invalid_arguments", function: functionId, message });
}

export function argumentsTooLarge(functionId: string, bytes: number, limitBytes: number): Settled {
  const message = `The arguments of ${functionId} are ${bytes} bytes; at most ${limitBytes} are allowed. The function was not run.`;
  return errorResult("not_run", { error: "arguments_too_large", function: functionId, message });
}

export function denied(envelope: DenialEnvelope): Settled {
  return { status: "not_run", result: textResult(envelope.reason, envelope), isError: true };
}

export function expired(functionId: string, ttlMs: number): Settled {
  const message = `The approval of ${functionId} expired after ${Math.round(ttlMs / 1000)} s without a decision; the function was not run.`;
  return errorResult(
    "not_run",
    { error: "approval_expired", approval_denied: true, decision: "expired", function: functionId },
    message,
  );
}

export function skippedBySteering(functionId: string): Settled {
  return errorResult(
    "not_run",
    { error: "skipped", function: functionId },
    `${functionId} was skipped: the user steered. It was not run.`,
  );
}

export function abortedBeforeStart(functionId: string): Settled {
  const text = `Function call aborted: ${functionId} had not started.`;
  return errorResult(
    "cancelled",
    { error: "aborted", started: false, decision: "aborted", function: functionId },
    text,
  );
}

export function abortedInFlight(functionId: string): Settled {
  const text = `Function call aborted: ${functionId} was running; its outcome is unknown and it may have taken effect.`;
  return errorResult("cancelled", { error: "aborted", started: true, decision: "aborted", function: functionId }, text);
}

/** I4: the worker died in mid-effect and may not be asked again. */
export function outcomeUnknown(functionId: string): Settled {
  const text = `The outcome of ${functionId} is unknown: its worker died while it ran. It may have taken effect; check before repeating it.`;
  return errorResult("unknown", { error: "outcome_unknown", function: functionId }, text);
}

export function timedOut(functionId: string, timeoutMs: number, hasStarted: boolean): Settled {
  const effect = hasStarted
    ? "Its outcome is unknown: it may have taken effect."
    : "It had not started and will not run.";
  const text = `${functionId} gave no answer within ${Math.round(timeoutMs / 1000)} s. ${effect}`;
  return errorResult(
    hasStarted ? "unknown" : "not_run",
    { error: "timeout", function: functionId, started: hasStarted },
    text,
  );
}

export function failed(functionId: string, error: ErrorBody): Settled {
  const details = { error: "handler_error", function: functionId, ...error };
  return errorResult("failed", details);
}

/** A function's answer: an object with `content` passes through, anything else is shown as text. */
export function answered(value: unknown): Settled {
  const result = resultOf(value);
  return { status: "done", result, isError: isErrorResult(result) };
}

function resultOf(value: unknown): FunctionResult {
  if (typeof value === "object" && value !== null && "content" in value && Array.isArray(value.content)) {
    const blocks = ContentBlock.array().safeParse(value.content);
    if (blocks.success) {
      const details = "details" in value ? value.details : {};
      const terminate =
        "terminate" in value && typeof value.terminate === "boolean" ? { terminate: value.terminate } : {};
      return { content: blocks.data, details, ...terminate };
    }
  }
  return textResult(typeof value === "string" ? value : (JSON.stringify(value) ?? "null"), value ?? null);
}

function isErrorResult(result: FunctionResult): boolean {
  const details = result.details;
  if (typeof details !== "object" || details === null) return false;
  return (
    ("error" in details && typeof details.error === "string") || ("status" in details && details.status === "denied")
  );
}
