// What may leave the process in a log record: secret-like keys and credentials in text are masked, sizes are bounded.

const mask = "[REDACTED]";
const maxDepth = 8;
const maxItems = 100;
const maxTextLength = 16_384;

const secretParts =
  /api_?key|api-key|password|secret|credential|authorization|auth_?token|access_?token|refresh_?token|bearer|private_?key/;
const tokenEnd = /(^|[_-])token$/;
/** `user:password@` of a URL. */
const urlLogin = /(:\/\/)[^/?#\s@]+@/g;
const bearer = /\b(bearer)\s+[\w.~+/=-]+/gi;

const known = new Map<string, boolean>();

/** Whether a value under this key must be masked (I13). */
export function isSecretKey(key: string): boolean {
  const cached = known.get(key);
  if (cached !== undefined) return cached;
  const snake = key.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
  const result = secretParts.test(snake) || tokenEnd.test(snake);
  if (known.size < 2_000) known.set(key, result);
  return result;
}

export function redactText(text: string): string {
  const short = text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text;
  const masked = short.includes("://") ? short.replace(urlLogin, `$1${mask}@`) : short;
  return masked.replace(bearer, `$1 ${mask}`);
}

/** A JSON-safe copy: never throws, follows no cycles. */
export function redact(value: unknown, depth = 0, seen: readonly object[] = []): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value === "bigint" || typeof value === "symbol") return String(value);
  if (typeof value === "function") return "[function]";
  if (typeof value !== "object" || value === null) return value;
  if (seen.includes(value)) return "[circular]";
  if (depth >= maxDepth) return "[deep]";
  const inside = [...seen, value];
  if (value instanceof Error) return redactError(value, depth, inside);
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[invalid date]" : value.toISOString();
  if (Array.isArray(value)) return value.slice(0, maxItems).map((item) => redact(item, depth + 1, inside));
  if (hasToJson(value)) return redactConverted(value, depth, inside);
  if (value instanceof Map) return redact(Object.fromEntries(value), depth + 1, inside);
  if (value instanceof Set) return redact([...value], depth + 1, inside);
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value).slice(0, maxItems)) {
    copy[key] = isSecretKey(key) ? mask : redact(item, depth + 1, inside);
  }
  return copy;
}

function redactError(error: Error, depth: number, seen: readonly object[]): Record<string, unknown> {
  const code = "code" in error ? error.code : undefined;
  return {
    name: error.name,
    message: redactText(error.message),
    ...(code === undefined ? {} : { code: redact(code, depth + 1, seen) }),
    ...(error.stack === undefined ? {} : { stack: redactText(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1, seen) }),
  };
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return "toJSON" in value && typeof value.toJSON === "function";
}

function redactConverted(value: { toJSON(): unknown }, depth: number, seen: readonly object[]): unknown {
  try {
    return redact(value.toJSON(), depth + 1, seen);
  } catch {
    return "[unreadable]";
  }
}
