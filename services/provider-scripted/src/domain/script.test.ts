import { describe, expect, it } from "vitest";
import { isScript, parseScript } from "./script.ts";

const blocksOf = (text: string) => {
  const script = parseScript(text);
  if (!script.ok) throw new Error(script.problem);
  return script.blocks;
};
const problemOf = (text: string) => {
  const script = parseScript(text);
  return script.ok ? null : script.problem;
};

describe("telling a script from talk", () => {
  it.each(["say hello", "Hello\ndelay 5", "  cut", "tokens 3 1\r\nsay x", "fail-first 1 transient", "tokens"])(
    "takes %j for a script",
    (text) => expect(isScript(text)).toBe(true),
  );
  it.each(["", "hello", "sayhello", "Say hello", "---", "I say hello", "error: no"])("takes %j for talk", (text) =>
    expect(isScript(text)).toBe(false),
  );
});

describe("the script language", () => {
  it("reads every line of it", () => {
    const text = [
      "think first this",
      "say Hello  world ",
      "call demo::echo",
      'call demo::refund {"order": "7", "amount": 2.5}',
      "delay 20",
      "tokens 3 5",
      "error rate_limited slow down",
      "cut",
      "usage 10 20",
      "fail-first 2 transient",
    ].join("\n");
    expect(blocksOf(text)).toEqual([
      [
        { kind: "think", text: "first this" },
        { kind: "say", text: "Hello  world " },
        { kind: "call", functionId: "demo::echo", args: {} },
        { kind: "call", functionId: "demo::refund", args: { order: "7", amount: 2.5 } },
        { kind: "delay", ms: 20 },
        { kind: "tokens", count: 3, ms: 5 },
        { kind: "error", errorKind: "rate_limited", message: "slow down" },
        { kind: "cut" },
        { kind: "usage", input: 10, output: 20 },
        { kind: "fail-first", count: 2, errorKind: "transient" },
      ],
    ]);
  });

  it("separates blocks at lines of three dashes and skips prose", () => {
    expect(blocksOf("please play\nsay a\r\n---\r\nsay b\n\n ---\n---\nsay --- c")).toEqual([
      [{ kind: "say", text: "a" }],
      [{ kind: "say", text: "b" }],
      [],
      [{ kind: "say", text: "--- c" }],
    ]);
  });

  it("ends a line at line feeds only, not at Unicode's line and paragraph separators", () => {
    expect(
      blocksOf('say a\u2028b\u2029c\r\ncall demo::echo {"text":"x\u2028y"}\nerror permanent p\u2028q\r')[0],
    ).toEqual([
      { kind: "say", text: "a\u2028b\u2029c" },
      { kind: "call", functionId: "demo::echo", args: { text: "x\u2028y" } },
      { kind: "error", errorKind: "permanent", message: "p\u2028q" },
    ]);
  });

  it("hands on arguments that are JSON but no object, so that the caller can refuse them", () => {
    expect(blocksOf("call demo::echo [1]\ncall demo::echo 5")[0]).toMatchObject([{ args: [1] }, { args: 5 }]);
  });

  it.each([
    ["say ok\ncall demo::echo {oops", /^script line 2: the arguments of call demo::echo are no JSON/],
    ["call", /^script line 1: call needs a function id/],
    ["error fatal boom", /^script line 1: .*fatal is no kind.*transient/],
    ["error", /the kind is missing/],
    ["delay soon", /^script line 1: delay MS needs a whole number/],
    ["delay 3600001", /is more than 3600000/],
    ["tokens 5", /tokens N MS needs 2 whole numbers/],
    ["usage 1 -2", /usage IN OUT needs 2 whole numbers/],
    ["fail-first x transient", /fail-first N KIND needs/],
    ["fail-first 1 sometimes", /sometimes is no kind/],
    ["cut it out", /cut takes nothing/],
  ])("names the line and the fault of %j", (text, problem) => {
    expect(problemOf(text)).toMatch(problem);
  });
});
