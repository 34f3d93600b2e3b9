// Reading JSON of unknown shape without trusting it.

export type JsonRecord = Record<string, unknown>;

export function asRecord(value: unknown): JsonRecord | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : null;
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The text, or an empty one for anything else. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A count, or undefined for anything that is none. */
export function asCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** The object that the text holds; null for anything else, also for what is no JSON. */
export function parseRecord(text: string): JsonRecord | null {
  try {
    return asRecord(JSON.parse(text));
  } catch {
    // The caller decides what an unreadable text means.
    return null;
  }
}
