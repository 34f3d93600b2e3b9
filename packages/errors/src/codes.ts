// Every error code of the product, one row each: what the caller should do, the HTTP status, and when it is used.

/** What the caller should do with an error: give up, try again, wait for an event, or stop because it was asked to. */
export type Disposition = "terminal" | "retry" | "wait" | "cancelled" | "defect";

export interface CodeRow {
  readonly disposition: Disposition;
  readonly httpStatus: number;
  readonly title: string;
  /** Expected in normal operation: logged at debug, not counted as an error. */
  readonly benign?: boolean;
}

export const codes = {
  INVALID_INPUT: { disposition: "terminal", httpStatus: 400, title: "The request is not valid" },
  UNAUTHENTICATED: { disposition: "terminal", httpStatus: 401, title: "A valid token is needed" },
  FORBIDDEN: { disposition: "terminal", httpStatus: 403, title: "This caller may not do that" },
  NOT_FOUND: { disposition: "terminal", httpStatus: 404, title: "There is no such thing" },
  SESSION_NOT_FOUND: { disposition: "terminal", httpStatus: 404, title: "There is no such session" },
  SESSION_GONE: { disposition: "terminal", httpStatus: 410, title: "The session was deleted" },
  SESSION_BUSY: { disposition: "wait", httpStatus: 409, title: "The session is busy with a turn", benign: true },
  SESSION_IDLE: { disposition: "terminal", httpStatus: 409, title: "The session has no running turn", benign: true },
  SESSION_INBOX_FULL: { disposition: "retry", httpStatus: 429, title: "Too many inputs wait on this session" },
  MESSAGE_ID_CONFLICT: { disposition: "terminal", httpStatus: 409, title: "This message id was used for another body" },
  UNSUPPORTED_MEDIA_TYPE: { disposition: "terminal", httpStatus: 415, title: "The body has the wrong media type" },
  PAYLOAD_TOO_LARGE: { disposition: "terminal", httpStatus: 413, title: "The body is too large" },
  FUNCTION_NOT_FOUND: { disposition: "terminal", httpStatus: 404, title: "No worker offers this function" },
  WORKER_UNAVAILABLE: { disposition: "retry", httpStatus: 503, title: "No worker that offers this function is live" },
  TIMEOUT: { disposition: "retry", httpStatus: 504, title: "No answer before the deadline" },
  CANCELLED: { disposition: "cancelled", httpStatus: 499, title: "The call was cancelled", benign: true },
  SHUTTING_DOWN: { disposition: "retry", httpStatus: 503, title: "The worker is shutting down" },
  STALE_EPOCH: { disposition: "cancelled", httpStatus: 409, title: "A newer owner has taken over", benign: true },
  OUTCOME_UNKNOWN: {
    disposition: "terminal",
    httpStatus: 500,
    title: "The worker died in mid-effect; what happened is unknown",
  },
  BUS_UNAVAILABLE: { disposition: "retry", httpStatus: 503, title: "The bus is not reachable" },
  BUS_PERMISSION: { disposition: "terminal", httpStatus: 403, title: "The bus user may not do that" },
  STORE_UNAVAILABLE: { disposition: "retry", httpStatus: 503, title: "The projection store is not reachable" },
  COMMIT_TOO_LARGE: { disposition: "terminal", httpStatus: 500, title: "A commit exceeds its size limit" },
  APPROVAL_NOT_FOUND: { disposition: "terminal", httpStatus: 404, title: "There is no such approval" },
  APPROVAL_DECIDED: { disposition: "terminal", httpStatus: 409, title: "The approval is already decided" },
  APPROVAL_EXPIRED: { disposition: "terminal", httpStatus: 409, title: "The approval has expired" },
  APPROVAL_REVOKED: { disposition: "terminal", httpStatus: 409, title: "The approval was revoked" },
  APPROVAL_DIGEST_MISMATCH: {
    disposition: "terminal",
    httpStatus: 409,
    title: "The digest does not match the arguments",
  },
  MODEL_UNKNOWN: { disposition: "terminal", httpStatus: 422, title: "The model is not known" },
  PROVIDER_UNKNOWN: { disposition: "terminal", httpStatus: 422, title: "The provider is not known" },
  PROVIDER_AUTH: { disposition: "terminal", httpStatus: 502, title: "The provider refused the credentials" },
  PROVIDER_TRANSIENT: { disposition: "retry", httpStatus: 502, title: "The provider failed for now" },
  PROVIDER_PERMANENT: { disposition: "terminal", httpStatus: 502, title: "The provider refused the request" },
  CREDENTIALS_MISSING: {
    disposition: "terminal",
    httpStatus: 424,
    title: "No credentials are configured for this provider",
  },
  POLICY_INVALID: { disposition: "terminal", httpStatus: 500, title: "The permissions file does not parse" },
  TURN_CRASH_LOOP: {
    disposition: "terminal",
    httpStatus: 500,
    title: "The turn was taken over too often without progress",
  },
  TURN_INVARIANT: { disposition: "defect", httpStatus: 500, title: "The session's state breaks an invariant" },
  CONFIG_INVALID: { disposition: "terminal", httpStatus: 500, title: "The configuration is not valid" },
  STREAM_MISMATCH: { disposition: "terminal", httpStatus: 500, title: "A stream differs from what this version needs" },
  FLEET_RUNNING: { disposition: "terminal", httpStatus: 409, title: "Workers are live that must be stopped first" },
  DEMO_FAILURE: { disposition: "terminal", httpStatus: 500, title: "The demo function failed as asked" },
  INTERNAL: { disposition: "defect", httpStatus: 500, title: "Something went wrong on our side" },
} as const satisfies Record<string, CodeRow>;

export type ErrorCode = keyof typeof codes;

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(codes, value);
}
