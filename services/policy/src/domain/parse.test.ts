// The grammar of permissions.yaml: what a file means, and what an error says.
import { describe, expect, it } from "vitest";
import { parsePermissions } from "./parse.ts";

const inShort = (text: string) =>
  parsePermissions(text).rules.map((rule) => `${rule.action} ${rule.pattern} ${rule.ruleId}`);

describe("the short and the long form", () => {
  it.each([
    ["a bare id allows", "rules: [demo::echo]", ["allow demo::echo demo::echo"]],
    ["a leading ! denies", "rules: ['!demo::echo']", ["deny demo::echo demo::echo"]],
    ["a glob may be denied", "rules: ['!provider::*']", ["deny provider::* provider::*"]],
    ["a lone star is everything", "rules: ['*']", ["allow * *"]],
    ["the long form allows", "rules: [{function: a::b, action: allow}]", ["allow a::b a::b"]],
    ["the long form denies", "rules: [{function: a::b, action: deny, rule_id: no-b}]", ["deny a::b no-b"]],
    ["the long form asks", "rules: [{function: a::b, action: needs_approval}]", ["needs_approval a::b a::b"]],
    ["an empty file has no rules", "", []],
    ["a file of comments has no rules", "# nothing\n", []],
    ["a version alone has no rules", "version: 1", []],
    ["empty rules are no rules", "version: 1\nrules:\n", []],
  ])("%s", (_title, text, expected) => {
    expect(inShort(text)).toEqual(expected);
  });

  it("sorts constraints by field and lets equals win when both are given", () => {
    const { rules } = parsePermissions(
      "rules: [{function: a::b, action: allow, args: {z: {matches: x}, a: {equals: [1, {b: null}], matches: y}}}]",
    );
    expect(rules[0]?.constraints.map(({ field, operator, value }) => [field, operator, value])).toEqual([
      ["a", "equals", [1, { b: null }]],
      ["z", "matches", "x"],
    ]);
  });
});

describe("errors name the rule and the field", () => {
  it.each([
    ["rules: [demo::echo, 7]", /^rule 1: must be a function id or a mapping/],
    ["rules: [null]", /^rule 0: must be/],
    ["rules: ['']", /^rule 0: must be/],
    ["rules: ['!']", /^rule 0: must be a function id/],
    ["rules: ['a::b c']", /^rule 0: must be a function id/],
    ["rules: [[a::b]]", /^rule 0: must be/],
    ["rules: [{action: allow}]", /^rule 0: function is missing/],
    ["rules: [{function: 5, action: allow}]", /^rule 0: function: must be a function id/],
    ["rules: [{function: a::b}]", /^rule 0: action must be one of allow, deny, needs_approval/],
    ["rules: [a::b, {function: a::b, action: ask}]", /^rule 1: action must be one of/],
    ["rules: [{function: a::b, action: allow, rule_id: 3}]", /^rule 0: rule_id: must be a text/],
    ["rules: [{function: a::b, action: allow, reason: '  '}]", /^rule 0: reason: must be a text/],
    ["rules: [{function: a::b, action: deny, arg: {}}]", /^rule 0: unknown key arg/],
    ["rules: [{function: a::b, action: deny, args: [x]}]", /^rule 0: args: must be a mapping/],
    ["rules: [{function: a::b, action: deny, args: {x: 1}}]", /^rule 0: args\.x: must be/],
    ["rules: [{function: a::b, action: deny, args: {x: {}}}]", /^rule 0: args\.x: needs equals or matches/],
    ["rules: [{function: a::b, action: deny, args: {x: {like: y}}}]", /^rule 0: args\.x: unknown key like/],
    ["rules: [{function: a::b, action: deny, args: {x: {matches: '('}}}]", /^rule 0: args\.x\.matches: .*[Rr]egular/],
    ["rules: [{function: a::b, action: deny, args: {x: {matches: 4}}}]", /^rule 0: args\.x\.matches: must be/],
    ["rules: [{function: a::b, action: deny, args: {x: {equals: .nan}}}]", /^rule 0: args\.x\.equals: must be a JSON/],
    ["rules: {a: b}", /^rules: must be a list/],
    ["version: 2", /^version: must be 1/],
    ["rule: [a::b]", /^the file: unknown key rule/],
    ["- a::b", /^the file must be a mapping/],
  ])("%s", (text, message) => {
    expect(() => parsePermissions(text)).toThrow(expect.objectContaining({ code: "POLICY_INVALID" }));
    expect(() => parsePermissions(text)).toThrow(message);
  });

  it("refuses a ! without quotes instead of losing the denial", () => {
    expect(() => parsePermissions("rules:\n  - !demo::refund\n  - demo::*\n")).toThrow(
      expect.objectContaining({ code: "POLICY_INVALID" }),
    );
  });

  it("names the line of text that is not YAML, and refuses a key given twice", () => {
    expect(() => parsePermissions("rules:\n  - 'a::b\n")).toThrow(/line \d/);
    expect(() => parsePermissions("rules: [a::b]\nrules: [c::d]\n")).toThrow(/unique/);
  });

  it("refuses an alias bomb", () => {
    const levels = Array.from({ length: 8 }, (_, level) => {
      const value = level === 0 ? "[x, x, x, x, x, x, x, x, x]" : `[${new Array(9).fill(`*l${level - 1}`).join(", ")}]`;
      return `l${level}: &l${level} ${value}`;
    });
    expect(() => parsePermissions(`${levels.join("\n")}\n`)).toThrow(
      expect.objectContaining({ code: "POLICY_INVALID" }),
    );
  });
});

describe("warnings", () => {
  it("tells of a rule_id used twice, which is allowed", () => {
    const { warnings, rules } = parsePermissions("rules: [a::b, c::d, '!a::b']");
    expect(rules).toHaveLength(3);
    expect(warnings).toEqual(["rule 2: rule_id a::b is already that of rule 0"]);
  });

  it("tells of a rule that no function id can match", () => {
    expect(parsePermissions("rules: [demo, Demo::echo, demo*]").warnings).toEqual([
      "rule 0: demo is not a function id, so the rule never matches",
      "rule 1: Demo::echo is not a function id, so the rule never matches",
    ]);
  });
});
