// How long to wait, from every place where vendors say it.
import { describe, expect, it } from "vitest";
import { retryAfterMs } from "./retry-after.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const wait = (headers: Record<string, string>, message = "") => retryAfterMs(new Headers(headers), message, now);

describe("retryAfterMs", () => {
  it.each([
    [{ "retry-after": "27" }, 27_000],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "1.5" }, 1_500],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:20 GMT" }, 20_000],
    [{ "retry-after-ms": "350", "retry-after": "27" }, 350],
    [
      {
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:10Z",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:27Z",
      },
      27_000,
    ],
    [
      {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "6m0s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "20ms",
      },
      360_000,
    ],
    [{ "x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s" }, undefined],
    [{ "retry-after": "Thu, 01 Jan 2020 00:00:00 GMT" }, undefined],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "-5" }, undefined],
    [{}, undefined],
  ])("of headers %j is %s", (headers, ms) => {
    expect(wait(headers as Record<string, string>)).toBe(ms);
  });

  it.each([
    ["Please try again in 20s. Contact us", 20_000],
    ["Please try again in 348ms.", 348],
    ["Please try again in 1m2.5s.", 62_500],
    ["please retry after 15 seconds", 15_000],
    ["Please wait for 2 minutes and retry", 120_000],
    ["Limit 30000 tokens per min", undefined],
  ])("of the words %s is %s", (message, ms) => {
    expect(wait({}, message)).toBe(ms);
  });
});
