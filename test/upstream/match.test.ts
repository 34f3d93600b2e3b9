// The matcher itself: it must be able to fail.
import { describe, expect, it } from "vitest";
import type { Expected } from "./load.ts";
import { differences } from "./match.ts";

const message = {
  role: "assistant" as const,
  content: [{ type: "text" as const, text: "Hi" }],
  stop_reason: "end" as const,
  error_kind: null,
  usage: { input: 1, output: 2, cost_microusd: 255 },
  model: "m",
  provider: "p",
  timestamp: 0,
};
const request = { scenario: "x", tag: "", attempt: 1, path: "", headers: {}, status: 200, closed_early: false };
const body = {
  messages: [
    { role: "user", content: "boom" },
    { role: "tool", id: "a" },
  ],
};
const produced = { message, requests: [{ ...request, body, violations: [] }] };
const linesOf = (expected: Expected) => differences(expected, produced).length;

describe("differences", () => {
  it.each<[Expected]>([
    [
      {
        content: [{ type: "text", text: "Hi" }],
        stop_reason: "end",
        error_kind: null,
        retry: false,
        cost_usd: 0.000255,
      },
    ],
    [{ content: { $any: true }, usage: { input: 1 } }],
    [{ stop_reason: { $one_of: ["length", "end"] }, usage: { output: { $between: [1, 3] } } }],
    [{ content: [{ text: { $match: "^H" } }] }],
    [{ any_of: [{ stop_reason: "error" }, { stop_reason: "end" }] }],
    [{ rules: ["no_replacement_char", "no_function_call"] }],
    [
      {
        requests: {
          violations: [],
          checks: [
            { path: "messages", length: 2 },
            { path: "messages.*.role", equals_all: ["user", "tool"] },
            { path: "messages.*.id", set: ["a"] },
            { path: "messages", contains: "boom" },
            { no_key: "is_error" },
            { path: "messages.1.role", equals: "tool" },
          ],
        },
      },
    ],
  ])("finds none in %j", (expected) => {
    expect(linesOf(expected)).toBe(0);
  });

  it.each<[Expected]>([
    [{ content: [] }],
    [{ content: [{ type: "text", text: "Ho" }] }],
    [{ stop_reason: { $one_of: ["length", "error"] } }],
    [{ usage: { output: { $between: [3, 4] } } }],
    [{ content: [{ text: { $match: "^h" } }] }],
    [{ any_of: [{ stop_reason: "error" }, { stop_reason: "length" }] }],
    [{ retry: true }],
    [{ cost_usd: 0.0003 }],
    [{ retry_after_ms: { $between: [1, 2] } }],
    [{ rules: ["upstream_closed_early"] }],
    [{ rules: ["a_rule_of_tomorrow"] }],
    [{ requests: { checks: [{ path: "messages", length: 3 }] } }],
    [{ requests: { checks: [{ path: "messages.*.role", equals_all: ["user"] }] } }],
    [{ requests: { checks: [{ path: "messages", contains: "bang" }] } }],
    [{ requests: { checks: [{ no_key: "role" }] } }],
    [{ requests: { checks: [{ path: "messages.9.role", equals: "tool" }] } }],
  ])("finds one in %j", (expected) => {
    expect(linesOf(expected)).toBeGreaterThan(0);
  });
});
