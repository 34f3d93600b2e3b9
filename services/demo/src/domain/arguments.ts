// What the demo functions make of their arguments: whatever comes, something sensible is done with it. Pure.

const maxMs = 3_600_000;
const maxRepeat = 1_000_000;
const maxTextLength = 4 * 1024 * 1024;

export type Args = Readonly<Record<string, unknown>>;

export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A number as such or as text; anything else, and anything negative, is `fallback`. */
export function numberOf(value: unknown, fallback: number): number {
  const number =
    typeof value === "number" ? value : typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
  return Number.isFinite(number) && number >= 0 ? number : fallback;
}

/** Milliseconds, an hour at most. */
export function msOf(value: unknown, fallback: number): number {
  return Math.min(maxMs, numberOf(value, fallback));
}

/** Repeated as often as asked, within 4 Mi characters. */
export function repeated(text: string, times: unknown): string {
  const wanted = Math.min(maxRepeat, Math.floor(numberOf(times, 1)));
  const most = text.length === 0 ? 0 : Math.floor(maxTextLength / text.length);
  return text.repeat(Math.min(wanted, Math.max(1, most)));
}

/** An error code that may go into a header: at most 64 printable characters without spaces. */
export function errorCodeOf(value: unknown): string {
  const code = textOf(value)
    .replaceAll(/[^\x21-\x7e]/g, "_")
    .slice(0, 64);
  return code === "" ? "DEMO_FAILURE" : code;
}
