// Expected values of the scenarios against a real message: `$any`, `$one_of`, `$match`, `$between`, `any_of`, rules and request checks.
import { isDeepStrictEqual } from "node:util";
import type { AssistantMessage } from "@flotilla/contracts";
import type { Expected, RequestCheck } from "./load.ts";
import type { UpstreamRequest } from "./upstream.mjs";

export interface Produced {
  readonly message: AssistantMessage;
  readonly requests: readonly UpstreamRequest[];
}

/** What differs, one line each; empty when all is as expected. */
export function differences(expected: Expected, produced: Produced): string[] {
  if (expected.any_of !== undefined) {
    const { any_of, ...rest } = expected;
    const tried = any_of.map((alternative) => differences({ ...rest, ...alternative }, produced));
    return tried.some((lines) => lines.length === 0)
      ? []
      : tried.flatMap((lines, n) => lines.map((line) => `any_of ${n}: ${line}`));
  }
  const { message, requests } = produced;
  const actual: Record<string, unknown> = {
    content: message.content,
    stop_reason: message.stop_reason,
    error_kind: message.error_kind ?? null,
    usage: message.usage,
    retry:
      message.stop_reason === "error" && (message.error_kind === "transient" || message.error_kind === "rate_limited"),
    retry_after_ms: message.retry_after_ms,
    cost_usd: (message.usage?.cost_microusd ?? Number.NaN) / 1e6,
  };
  const { rules = [], requests: wanted, ...fields } = expected;
  return [
    ...Object.entries(fields).flatMap(([name, value]) => compare(value, actual[name], name)),
    ...rules.flatMap((rule) => checkRule(rule, produced)),
    ...(wanted?.violations === undefined
      ? []
      : compare(
          wanted.violations,
          requests.flatMap((request) => request.violations),
          "violations",
        )),
    ...(wanted?.checks ?? []).flatMap((check) => checkRequest(check, requests.at(-1)?.body)),
  ];
}

function compare(expected: unknown, actual: unknown, path: string): string[] {
  const differs = (): string[] => [`${path}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`];
  if (isRecord(expected)) {
    if ("$any" in expected) return [];
    if ("$one_of" in expected) {
      const choices = expected.$one_of as unknown[];
      return choices.some((choice) => compare(choice, actual, path).length === 0) ? [] : differs();
    }
    if ("$match" in expected) return new RegExp(String(expected.$match)).test(String(actual)) ? [] : differs();
    if ("$between" in expected) {
      const [low, high] = expected.$between as [number, number];
      return typeof actual === "number" && actual >= low && actual <= high ? [] : differs();
    }
    if (!isRecord(actual)) return differs();
    return Object.entries(expected).flatMap(([key, value]) => compare(value, actual[key], `${path}.${key}`));
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return differs();
    return expected.flatMap((value, n) => compare(value, actual[n], `${path}.${n}`));
  }
  // Money: a millionth of a dollar is the finest unit there is.
  if (typeof expected === "number" && typeof actual === "number")
    return Math.abs(expected - actual) <= 1e-6 ? [] : differs();
  return isDeepStrictEqual(expected, actual) ? [] : differs();
}

function checkRule(rule: string, { message, requests }: Produced): string[] {
  const says = (holds: boolean): string[] => (holds ? [] : [`rule ${rule} is broken`]);
  if (rule === "no_replacement_char") return says(!JSON.stringify(message.content).includes("\ufffd"));
  if (rule === "no_function_call") return says(message.content.every((block) => block.type !== "function_call"));
  if (rule === "upstream_closed_early") return says(requests.at(-1)?.closed_early === true);
  return [`rule ${rule} is not known`];
}

function checkRequest(check: RequestCheck, body: unknown): string[] {
  const says = (holds: boolean): string[] =>
    holds ? [] : [`request check ${JSON.stringify(check)} fails on ${JSON.stringify(found)}`];
  const found = check.path === undefined ? [body] : valuesAt(body, check.path.split("."));
  const [first] = found;
  if (check.no_key !== undefined) return says(!hasKey(body, check.no_key));
  if (check.length !== undefined) return says(Array.isArray(first) && first.length === check.length);
  if (check.contains !== undefined) return says(JSON.stringify(first)?.includes(check.contains) === true);
  if (check.equals_all !== undefined) return says(isDeepStrictEqual(found, check.equals_all));
  if (check.set !== undefined) return says(isDeepStrictEqual([...new Set(found)].sort(), [...check.set].sort()));
  return says(isDeepStrictEqual(first, check.equals));
}

function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  const [key, ...rest] = path;
  if (key === undefined) return value === undefined ? [] : [value];
  if (key === "*") return Array.isArray(value) ? value.flatMap((item) => valuesAt(item, rest)) : [];
  return isRecord(value) || Array.isArray(value) ? valuesAt((value as Record<string, unknown>)[key], rest) : [];
}

function hasKey(value: unknown, key: string): boolean {
  if (Array.isArray(value)) return value.some((item) => hasKey(item, key));
  return isRecord(value) && (key in value || Object.values(value).some((item) => hasKey(item, key)));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
