// A vendor's error body, whatever its shape, as code, type and message; the same for an HTTP reply and an event of a stream.

export interface VendorError {
  readonly code: string;
  readonly type: string;
  readonly message: string;
  /** HTTP status, also one that an error inside a stream names. */
  readonly status: number | undefined;
}

const maxMessageChars = 2_000;

export function readVendorError(body: string, status?: number): VendorError {
  try {
    return vendorErrorOf(JSON.parse(body), status);
  } catch {
    // Not JSON: a gateway's page or a plain sentence.
    return { code: "", type: "", message: plainText(body), status };
  }
}

export function vendorErrorOf(value: unknown, status?: number): VendorError {
  const outer = record(Array.isArray(value) ? value[0] : value);
  if (outer === null) return { code: "", type: "", message: text(value), status };
  const inner = record(outer.error) ?? record(record(outer.response)?.error) ?? outer;
  const message = [inner.message, inner.detail, outer.error, outer.message, outer.detail, inner.error].find(isText);
  const code = typeof inner.code === "string" ? inner.code : "";
  return {
    code,
    type: typeof inner.type === "string" && inner.type !== "error" ? inner.type : "",
    message: text(message ?? (code === "" ? JSON.stringify(value) : code)),
    status: status ?? statusIn(inner.status) ?? statusIn(inner.code) ?? statusIn(inner.status_code),
  };
}

function statusIn(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && number >= 400 && number <= 599 ? number : undefined;
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function text(value: unknown): string {
  const whole = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return whole.trim().slice(0, maxMessageChars).toWellFormed();
}

function plainText(body: string): string {
  const isPage = /<html|<!doctype/i.test(body);
  const words = isPage ? body.replaceAll(/<(script|style)[\s\S]*?<\/\1>|<[^>]*>/gi, " ") : body;
  return text(words.replaceAll(/\s+/g, " "));
}
