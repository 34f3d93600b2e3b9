// Canonical JSON (RFC 8785) and the digests made of it.
import { sha256Hex } from "./ids.ts";

/** RFC 8785: keys sorted by UTF-16 code units, no whitespace, JSON number and string forms of ECMAScript. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") {
    if (typeof value === "number" && !Number.isFinite(value))
      throw new TypeError("canonical JSON has no NaN or Infinity");
    return JSON.stringify(value) ?? "null";
  }
  if (Array.isArray(value))
    return `[${value.map((item) => canonicalJson(item === undefined ? null : item)).join(",")}]`;
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object)
    .filter((key) => object[key] !== undefined)
    .sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key])}`).join(",")}}`;
}

/** What an approval is bound to: `sha256:` and hex of the canonical `{function_id, arguments}` as they will run. */
export function argumentsDigest(functionId: string, args: unknown): string {
  return `sha256:${sha256Hex(canonicalJson({ function_id: functionId, arguments: args }))}`;
}

/** The digest of an accepted body, kept in `Fl-Digest`, by which a repeated message id is told from a conflict. */
export function bodyDigest(body: unknown): string {
  return `sha256:${sha256Hex(canonicalJson(body))}`;
}
