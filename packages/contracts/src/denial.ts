// The denial envelope of a refused call (contracts.md 2.7), and the redaction of the arguments that it quotes.
import type { PolicyVerdict } from "./functions/workers.ts";
import type { DenialEnvelope } from "./messages.ts";

const secretNames = [
  "password",
  "token",
  "api_key",
  "apikey",
  "secret",
  "auth",
  "authorization",
  "access_key",
  "access_token",
  "refresh_token",
  "private_key",
] as const;
const maxStringCodePoints = 256;
const maxDepth = 64;
/** The excerpt goes back to the model: arguments of a megabyte must not be paid for twice. */
const maxExcerptBytes = 16 * 1024;

function isSecretKey(key: string): boolean {
  // `apiKey` and `X-Api-Key` are the same name in other clothes.
  const snake = key.replace(/([a-z0-9])([A-Z])/g, "$1_$2").replace(/([A-Z])([A-Z][a-z])/g, "$1_$2");
  return [key, snake].some((form) => {
    const name = form.replaceAll("-", "_").toLowerCase();
    return secretNames.some((secret) => name === secret || name.endsWith(`_${secret}`));
  });
}

function clip(text: string): string {
  // The length in UTF-16 units bounds the code points: a short text is not walked.
  if (text.length <= maxStringCodePoints) return text;
  let end = 0;
  let points = 0;
  for (const character of text) {
    if (points === maxStringCodePoints) return `${text.slice(0, end)}…`;
    end += character.length;
    points++;
  }
  return text;
}

function redact(value: unknown, depth: number): unknown {
  if (typeof value === "string") return clip(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= maxDepth) return "<max-depth>";
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  // fromEntries defines own properties, so a key `__proto__` stays plain data.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, isSecretKey(key) ? "<redacted>" : redact(item, depth + 1)]),
  );
}

/**
 * A copy that is safe to show: values of secret-looking keys become `<redacted>`, strings are clipped to 256 code
 * points and an ellipsis, nesting beyond 64 becomes `<max-depth>`. The input is not changed.
 */
export function redactArguments(args: unknown): unknown {
  return redact(args, 0);
}

function excerptOf(args: unknown): unknown {
  const excerpt = redactArguments(args);
  const bytes = Buffer.byteLength(JSON.stringify(excerpt) ?? "");
  return bytes <= maxExcerptBytes ? excerpt : `<${bytes} bytes of arguments>`;
}

type DenyVerdict = Extract<PolicyVerdict, { decision: "deny" }>;

function policyReason(functionId: string, verdict: DenyVerdict): string {
  const base = `Permission denied: ${functionId} matched rule ${verdict.rule_id}`;
  const why = verdict.reason === undefined ? "" : ` (${verdict.reason})`;
  const constraint = verdict.matched_constraint;
  if (constraint === undefined) return `${base}${why}. Use another function.`;
  const value = JSON.stringify(constraint.value) ?? "undefined";
  return `${base}${why}: ${constraint.field} ${constraint.operator} ${value}. Other arguments may be allowed.`;
}

/** A rule of the permissions file, or a kernel rule, forbids the call. */
export function denialByPolicy(functionId: string, verdict: DenyVerdict, args: unknown): DenialEnvelope {
  return {
    schema_version: 1,
    status: "denied",
    denied_by: "permissions",
    function_id: functionId,
    rule_id: verdict.rule_id,
    rule_action: "deny",
    ...(verdict.matched_constraint === undefined ? {} : { matched_constraint: verdict.matched_constraint }),
    args_excerpt: excerptOf(args),
    reason: policyReason(functionId, verdict),
  };
}

/** A person said no. */
export function denialByUser(functionId: string, reason: string | null | undefined, args: unknown): DenialEnvelope {
  const said = reason?.trim() ?? "";
  return {
    schema_version: 1,
    status: "denied",
    denied_by: "user",
    function_id: functionId,
    args_excerpt: excerptOf(args),
    reason: said === "" ? "Rejected by operator." : said,
  };
}

/** I8: nobody who may decide could be asked, so the call is denied. */
export function gateUnavailable(functionId: string, reason: string): DenialEnvelope {
  return { schema_version: 1, status: "denied", denied_by: "gate_unavailable", function_id: functionId, reason };
}
