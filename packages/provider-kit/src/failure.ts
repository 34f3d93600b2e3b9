// A failed model call as a value, and as the error that carries it up.
import type { ErrorKind } from "@flotilla/contracts";

export interface Failure {
  readonly kind: ErrorKind;
  /** Safe to show: the vendor's words without credentials. */
  readonly message: string;
  readonly retryAfterMs?: number;
}

export class ProviderFailure extends Error {
  readonly failure: Failure;

  constructor(failure: Failure, options: { cause?: unknown } = {}) {
    super(failure.message, options);
    this.name = "ProviderFailure";
    this.failure = failure;
  }
}

export function transient(message: string, cause?: unknown): ProviderFailure {
  return new ProviderFailure({ kind: "transient", message }, { cause });
}

export function permanent(message: string): ProviderFailure {
  return new ProviderFailure({ kind: "permanent", message });
}
