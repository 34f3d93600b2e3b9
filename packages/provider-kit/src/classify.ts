// What a vendor's error means for the caller: again, later, compact first, or not at all. Pure.
import type { ErrorKind } from "@flotilla/contracts";
import type { Failure } from "./failure.ts";
import { isOverflow } from "./overflow.ts";
import { retryAfterMs } from "./retry-after.ts";
import type { VendorError } from "./vendor-error.ts";

/** Codes and types that say it all, whatever the status. */
const codesOf: Readonly<Record<ErrorKind, readonly string[]>> = {
  permanent: [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "exceeded_current_quota_error",
    "insufficient_balance",
    "unsupported_country_region_territory",
    "model_not_found",
    "not_found_error",
    "resource_not_found_error",
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
  ],
  auth_expired: [
    "authentication_error",
    "invalid_authentication_error",
    "incorrect_api_key_error",
    "permission_error",
    "permission_denied_error",
    "invalid_api_key",
    "account_deactivated",
    "token_expired",
    "unauthorized",
  ],
  context_overflow: ["context_length_exceeded", "context_window_exceeded", "request_too_large"],
  rate_limited: ["rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error", "too_many_requests"],
  transient: [
    "overloaded_error",
    "engine_overloaded_error",
    "server_is_overloaded",
    "slow_down",
    "api_error",
    "server_error",
    "internal_error",
    "internal_server_error",
    "service_unavailable",
    "service_unavailable_error",
    "timeout_error",
    "timeout",
    "bad_gateway",
    "gateway_timeout",
  ],
};
const kinds = new Map(
  (Object.entries(codesOf) as [ErrorKind, readonly string[]][]).flatMap(([kind, codes]) =>
    codes.map((code) => [code, kind] as const),
  ),
);

/** Waiting does not bring money back. A mere link to a billing page in a rate-limit text is not this. */
const noQuota =
  /insufficient[ _](?:quota|balance|credits?|funds)|exceeded (?:your|the) current quota|credit balance is too low|out of credits|no (?:remaining )?(?:credits|quota|balance)\b|(?:quota|credits?|balance) (?:is |are |has been |have been )?(?:exhausted|used up|depleted|exceeded)|payment required|billing (?:hard )?limit|account is not active|(?:monthly|spend(?:ing)?|budget) (?:usage |spend )?limit/;
const unknownModel =
  /\bmodel\b.{0,120}(?:not found|does(?: not|n't) exist|not loaded|not available|not supported|no longer available|deprecated)|no models? (?:is |are )?loaded|(?:unknown|invalid|unsupported) model|not (?:a valid|have access to (?:the )?)model/;
const badKey =
  /\b(?:invalid|incorrect|missing|expired|revoked|no|wrong)\b.{0,20}\b(?:api[ _-]?key|token|credentials?)\b|unauthori[sz]ed|not authenticated|authentication (?:failed|required|error)/;
const rateLimit = /rate[ _-]?limit|too many requests|requests per (?:minute|second|day)|tokens per (?:minute|day)/;

const retryableStatus = new Set([408, 409, 421, 425]);

export function kindOf(error: VendorError): ErrorKind {
  const { status } = error;
  const message = error.message.toLowerCase();
  const named = kinds.get(error.code) ?? kinds.get(error.type);
  if (named !== undefined && isSure(named, error, message)) return named;
  if (status === 402 || (isClientError(status) && noQuota.test(message))) return "permanent";
  if (status === 429) return "rate_limited";
  if (status === 401) return "auth_expired";
  if (status === 403)
    return unknownModel.test(message) || /country|region|territory/.test(message) ? "permanent" : "auth_expired";
  if (status === 404) return "permanent";
  if (status === 413 || isOverflow(error)) return "context_overflow";
  if (status === undefined) return kindOfWords(error, message);
  if (status >= 500 || retryableStatus.has(status)) return "transient";
  return badKey.test(message) && error.code === "" && error.type === "" ? "auth_expired" : "permanent";
}

/** A wrapper may put a general type on anything: then the words and the status know better. */
function isSure(kind: ErrorKind, error: VendorError, message: string): boolean {
  if (kind === "rate_limited") return error.code !== "" || !noQuota.test(message);
  if (kind !== "transient") return true;
  const { status } = error;
  const isServers = status === undefined || status >= 500 || status === 429 || retryableStatus.has(status);
  return isServers && !isOverflow(error);
}

function isClientError(status: number | undefined): boolean {
  return status === undefined || (status >= 400 && status < 500);
}

/** An error inside a stream that names neither a status nor a known type. */
function kindOfWords(error: VendorError, message: string): ErrorKind {
  if (rateLimit.test(message)) return "rate_limited";
  if (badKey.test(message)) return "auth_expired";
  if (unknownModel.test(message)) return "permanent";
  return error.type.startsWith("invalid_request") || error.code.startsWith("invalid_") ? "permanent" : "transient";
}

const keyLike = /(?<![\w-])(?:sk|pk|rk)-[\w*.-]{6,}|\bBearer\s+\S{6,}/g;

export function failureOf(
  error: VendorError,
  context: { readonly provider: string; readonly headers?: Headers; readonly now: number },
): Failure {
  const kind = kindOf(error);
  const label = [context.provider, error.status, error.code || error.type].filter(
    (part) => part !== undefined && part !== "",
  );
  const message = `${label.join(" ")}: ${error.message.replaceAll(keyLike, "[redacted]") || "no message"}`;
  if (kind !== "rate_limited" && kind !== "transient") return { kind, message };
  const wait = retryAfterMs(context.headers ?? new Headers(), error.message, context.now);
  return wait === undefined ? { kind, message } : { kind, message, retryAfterMs: wait };
}
