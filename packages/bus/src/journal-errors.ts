// What a failed JetStream request means: a refused expectation, a refusal for good, or (all else) an unknown fate.
import { JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";

/** 10071 = wrong last sequence; R3 may answer 10164 for the loser of a race. */
export function isWrongSequence(error: unknown): boolean {
  return error instanceof JetStreamApiError && (error.code === 10071 || error.code === 10164);
}

/** Refused for good: trying the same bytes again cannot help (10054 = larger than the stream allows). */
export function isRefused(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.code === 10054;
  return error instanceof errors.InvalidArgumentError;
}

export function isPermission(error: unknown): boolean {
  if (error instanceof errors.PermissionViolationError) return true;
  return error instanceof Error && error.cause instanceof errors.PermissionViolationError;
}
