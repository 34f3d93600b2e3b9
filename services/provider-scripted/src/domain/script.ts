// The script language of the model `play`: text to blocks of steps, and what is wrong with a line. Pure.
import { ErrorKind } from "@flotilla/contracts";

export type Step =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "think"; readonly text: string }
  | { readonly kind: "call"; readonly functionId: string; readonly args: unknown }
  | { readonly kind: "delay"; readonly ms: number }
  | { readonly kind: "tokens"; readonly count: number; readonly ms: number }
  | { readonly kind: "error"; readonly errorKind: ErrorKind; readonly message: string }
  | { readonly kind: "cut" }
  | { readonly kind: "fail-first"; readonly count: number; readonly errorKind: ErrorKind }
  | { readonly kind: "usage"; readonly input: number; readonly output: number };

/** One model call's part of a script. */
export type Block = readonly Step[];

export type ParsedScript =
  | { readonly ok: true; readonly blocks: readonly Block[] }
  | { readonly ok: false; readonly problem: string };

type Parse = (rest: string) => Step | string;

const maxMs = 3_600_000;
const maxTokens = 1_000_000;
const scriptLine = /^\s*(say|think|call|delay|tokens|error|cut|usage|fail-first)(?:[ \t](.*))?$/s;
const separator = /^\s*---\s*$/;
const wholeNumber = /^\d{1,9}$/;

const parsers: Readonly<Record<string, Parse>> = {
  say: (text) => ({ kind: "say", text }),
  think: (text) => ({ kind: "think", text }),
  call: parseCall,
  delay: (rest) => withNumbers(rest, "delay MS", [maxMs], ([ms]) => ({ kind: "delay", ms })),
  tokens: (rest) =>
    withNumbers(rest, "tokens N MS", [maxTokens, maxMs], ([count, ms]) => ({ kind: "tokens", count, ms })),
  error: parseError,
  cut: (rest) => (rest.trim() === "" ? { kind: "cut" } : "cut takes nothing"),
  usage: (rest) =>
    withNumbers(rest, "usage IN OUT", [1e9, 1e9], ([input, output]) => ({ kind: "usage", input, output })),
  "fail-first": parseFailFirst,
};

/** Whether some line begins with a script word. */
export function isScript(text: string): boolean {
  return linesOf(text).some((line) => scriptLine.test(line));
}

/** Lines that begin with no script word are prose and say nothing to the player. */
export function parseScript(text: string): ParsedScript {
  const blocks: Step[][] = [[]];
  for (const [index, line] of linesOf(text).entries()) {
    if (separator.test(line)) {
      blocks.push([]);
      continue;
    }
    const [, word, rest = ""] = scriptLine.exec(line) ?? [];
    const parse = word === undefined ? undefined : parsers[word];
    if (parse === undefined) continue;
    const step = parse(rest);
    if (typeof step === "string") return { ok: false, problem: `script line ${index + 1}: ${step}` };
    blocks.at(-1)?.push(step);
  }
  return { ok: true, blocks };
}

function linesOf(text: string): string[] {
  return text.split(/\r\n?|\n/);
}

function parseCall(rest: string): Step | string {
  const [, functionId, json = ""] = /^\s*(\S+)\s*(.*)$/s.exec(rest) ?? [];
  if (functionId === undefined) return "call needs a function id";
  if (json.trim() === "") return { kind: "call", functionId, args: {} };
  try {
    return { kind: "call", functionId, args: JSON.parse(json) as unknown };
  } catch (error) {
    return `the arguments of call ${functionId} are no JSON (${error instanceof Error ? error.message : String(error)})`;
  }
}

function parseError(rest: string): Step | string {
  const [, kind = "", message = ""] = /^\s*(\S+)\s*(.*)$/s.exec(rest) ?? [];
  const parsed = ErrorKind.safeParse(kind);
  if (!parsed.success) return kindProblem("error KIND [MESSAGE]", kind);
  return { kind: "error", errorKind: parsed.data, message: message.trim() || `scripted failure: ${kind}` };
}

function parseFailFirst(rest: string): Step | string {
  const [count = "", kind = "", ...more] = wordsOf(rest);
  const parsed = ErrorKind.safeParse(kind);
  if (!wholeNumber.test(count) || more.length > 0) return "fail-first N KIND needs a whole number and a kind";
  if (!parsed.success) return kindProblem("fail-first N KIND", kind);
  return { kind: "fail-first", count: Number(count), errorKind: parsed.data };
}

function kindProblem(usage: string, kind: string): string {
  return `${usage}: ${kind === "" ? "the kind is missing" : `${kind} is no kind`}, it is one of ${ErrorKind.options.join(", ")}`;
}

/** As many whole numbers as there are bounds. */
function withNumbers(
  rest: string,
  usage: string,
  bounds: readonly number[],
  make: (numbers: [number, number]) => Step,
): Step | string {
  const words = wordsOf(rest);
  const areNumbers = words.length === bounds.length && words.every((word) => wholeNumber.test(word));
  if (!areNumbers) return `${usage} needs ${bounds.length === 1 ? "a whole number" : `${bounds.length} whole numbers`}`;
  const tooLarge = words.findIndex((word, index) => Number(word) > (bounds[index] ?? 0));
  if (tooLarge !== -1) return `${usage}: ${words[tooLarge]} is more than ${bounds[tooLarge]}`;
  return make([Number(words[0]), Number(words[1] ?? 0)]);
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
