// What to do with a model call that failed: again, later, the next model of the chain, or the end. Pure.
import type { AssistantMessage, OpenModelCall } from "@flotilla/contracts";

export interface RetryPolicy {
  /** Retries per model of the chain. */
  readonly retries: number;
  readonly baseMs: number;
  /** Longest wait that a provider may ask for. */
  readonly maxMs: number;
}

export type RetryDecision =
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "failover"; readonly chainIndex: number }
  | { readonly kind: "give_up" };

/** `jitter` is in [0, 1). Only transient and rate-limited failures are tried again on the same model. */
export function decideRetry(
  message: AssistantMessage,
  call: OpenModelCall,
  chainLength: number,
  policy: RetryPolicy,
  jitter: number,
): RetryDecision {
  const kind = message.error_kind ?? "transient";
  const isRetryable = kind === "transient" || kind === "rate_limited";
  const asked = message.retry_after_ms ?? 0;
  if (isRetryable && call.retries < policy.retries && asked <= policy.maxMs) {
    const backoff = policy.baseMs * 2 ** call.retries * (0.8 + 0.4 * jitter);
    return { kind: "retry", delayMs: Math.round(Math.max(backoff, asked)) };
  }
  if (call.chain_index + 1 < chainLength) return { kind: "failover", chainIndex: call.chain_index + 1 };
  return { kind: "give_up" };
}
