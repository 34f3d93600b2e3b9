// How long a vendor asks us to wait: headers first, then its words. Pure.

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function retryAfterMs(headers: Headers, message: string, now: number): number | undefined {
  return (
    number(headers.get("retry-after-ms"), 1) ??
    number(headers.get("retry-after"), 1_000) ??
    until(headers.get("retry-after"), now) ??
    limitReset(headers, now) ??
    saidInWords(message)
  );
}

function number(value: string | null, factor: number): number | undefined {
  if (value === null || value.trim() === "") return undefined;
  const parsed = Number(value);
  return Number.isFinite(parsed) && parsed >= 0 ? Math.ceil(parsed * factor) : undefined;
}

function until(value: string | null, now: number): number | undefined {
  if (value === null || /^[\d.]*$/.test(value)) return undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) || at < now ? undefined : at - now;
}

/** The latest reset among the limits that are used up: `…-remaining: 0` beside `…-reset`. */
function limitReset(headers: Headers, now: number): number | undefined {
  const waits: number[] = [];
  for (const [name, value] of headers) {
    if (!/ratelimit/.test(name) || !/remaining/.test(name) || Number(value) !== 0) continue;
    const reset = headers.get(name.replace("remaining", "reset"));
    const wait = until(reset, now) ?? duration(reset ?? "");
    if (wait !== undefined) waits.push(wait);
  }
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/** "Please try again in 1m2.5s", "retry after 20 seconds". */
function saidInWords(message: string): number | undefined {
  const match =
    /(?:try again|retry|wait|available|reset)\w*(?: \w+){0,3} (?:in|after|for) ((?:[\d.]+ ?(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|d|days?)\b ?)+|(?:\d+(?:\.\d+)?(?:ms|s|m|h))+)/i.exec(
      message,
    );
  return match?.[1] === undefined ? undefined : duration(match[1]);
}

/** "6m0s", "20ms", "1.5 s", "2 minutes". */
function duration(text: string): number | undefined {
  let total: number | undefined;
  for (const [, amount, word] of text.matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/gi)) {
    const unit = units[shortUnit(word?.toLowerCase() ?? "")];
    if (unit === undefined) return undefined;
    total = (total ?? 0) + Number(amount) * unit;
  }
  return total === undefined ? undefined : Math.ceil(total);
}

function shortUnit(word: string): string {
  return word === "ms" || word.startsWith("milli") ? "ms" : word.slice(0, 1);
}
