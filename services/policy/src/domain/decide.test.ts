// Verdicts: order of rules, constraints, the kernel, the shipped file.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createGuardedTester } from "../adapters/guarded-regex.ts";
import { decide } from "./decide.ts";
import { parsePermissions } from "./parse.ts";
import type { Rule } from "./rules.ts";

const test = createGuardedTester();
const rulesOf = (text: string): readonly Rule[] => parsePermissions(text).rules;
const check = (rules: readonly Rule[] | null, functionId: string, args: Record<string, unknown> = {}) =>
  decide(rules, { functionId, args }, test);

describe("rules", () => {
  it("lets the first match win, in both orders", () => {
    expect(check(rulesOf("rules: ['!a::b', 'a::*']"), "a::b").decision).toBe("deny");
    expect(check(rulesOf("rules: ['a::*', '!a::b']"), "a::b")).toEqual({ decision: "allow", rule_id: "a::*" });
  });

  it("needs approval for a function that no rule matches", () => {
    expect(check(rulesOf("rules: [a::b]"), "a::c")).toEqual({ decision: "needs_approval" });
    expect(check([], "a::c")).toEqual({ decision: "needs_approval" });
  });

  it("hands on the reason of an explicit needs_approval and of a deny", () => {
    const rules = rulesOf(`rules:
      - {function: a::ask, action: needs_approval, reason: moves money}
      - {function: a::no, action: deny, rule_id: never, reason: retired}`);
    expect(check(rules, "a::ask")).toEqual({ decision: "needs_approval", reason: "moves money" });
    expect(check(rules, "a::no")).toEqual({
      decision: "deny",
      rule_id: "never",
      rule_action: "deny",
      reason: "retired",
    });
  });
});

describe("constraints", () => {
  const rules = rulesOf(`rules:
    - {function: s::x, action: deny, rule_id: no-rm, args: {command: {matches: '^rm '}, cwd: {equals: /}}}
    - {function: s::x, action: allow, args: {opts: {equals: {a: [1, 2], b: null}}}}`);

  it("takes a rule only when all of them hold, and names the first by field", () => {
    expect(check(rules, "s::x", { command: "rm -rf x", cwd: "/" })).toEqual({
      decision: "deny",
      rule_id: "no-rm",
      rule_action: "deny",
      matched_constraint: { field: "command", operator: "matches", value: "^rm " },
    });
    expect(check(rules, "s::x", { command: "rm -rf x", cwd: "/tmp" }).decision).toBe("needs_approval");
    expect(check(rules, "s::x", { command: "rm -rf x" }).decision).toBe("needs_approval");
  });

  it("compares equals deeply and strictly, whatever the order of keys", () => {
    expect(check(rules, "s::x", { opts: { b: null, a: [1, 2] } }).decision).toBe("allow");
    for (const opts of [{ a: [2, 1], b: null }, { a: ["1", 2], b: null }, { a: [1, 2] }, "x", null, undefined]) {
      expect(check(rules, "s::x", { opts }).decision).toBe("needs_approval");
    }
  });

  it("applies matches to strings only, unanchored, and to own fields only", () => {
    const matching = rulesOf("rules: [{function: a::b, action: allow, args: {f: {matches: 'b'}}}]");
    expect(check(matching, "a::b", { f: "abc" }).decision).toBe("allow");
    for (const f of [5, ["b"], { b: "b" }, null, true]) {
      expect(check(matching, "a::b", { f }).decision).toBe("needs_approval");
    }
    const inherited = rulesOf("rules: [{function: a::b, action: allow, args: {toString: {matches: ''}}}]");
    expect(check(inherited, "a::b").decision).toBe("needs_approval");
  });

  it("denies within the time limit when a pattern backtracks without bound, for allow and deny rules (I8)", () => {
    for (const action of ["allow", "deny"]) {
      const evil = rulesOf(`rules: [{function: a::b, action: ${action}, args: {f: {matches: '^(a+)+$'}}}, a::*]`);
      const started = performance.now();
      expect(check(evil, "a::b", { f: `${"a".repeat(60)}!` })).toMatchObject({
        decision: "deny",
        matched_constraint: { field: "f", operator: "matches", value: "^(a+)+$" },
      });
      expect(performance.now() - started).toBeLessThan(2_000);
      expect(check(evil, "a::b", { f: "aaa" }).decision).toBe(action);
    }
  });

  it("denies a value that is too long to be tried (I8)", () => {
    const rules = rulesOf("rules: [{function: a::b, action: deny, args: {f: {matches: '^rm'}}}, a::*]");
    expect(check(rules, "a::b", { f: "x".repeat(65_536) }).decision).toBe("allow");
    expect(check(rules, "a::b", { f: "x".repeat(65_537) }).decision).toBe("deny");
  });
});

describe("the kernel", () => {
  const allowAll = rulesOf("rules: ['*', 'run::*', {function: run::start, action: allow}]");

  it.each([
    "run::start",
    "run::abort",
    "turn::get_state",
    "agent::trigger",
    "approval::resolve",
    "approval::list",
    "policy::check_permissions",
    "hook-fanout::publish_collect",
    "auth::get_token",
    "auth::set_token",
    "auth::delete_token",
    "oauth::anthropic::login",
    "oauth::openai-codex::login",
    "session-tree::append",
    "session-tree::append_batch",
    "session-tree::create",
    "session-tree::rebuild",
    "session-tree::not_written_yet",
    "session-inbox::push",
    "session-inbox::peek",
    "harness::trigger",
    "ui::subscribe",
    "provider::anthropic::stream",
    "provider::scripted::calls",
    "budget::create",
    "budget::exempt",
    "router::stream_assistant",
    "router::abort",
    "state::set",
    "state::update",
    "state::delete",
    "stream::set",
    "iii::durable::publish",
  ])("denies %s whatever the file says", (functionId) => {
    for (const rules of [allowAll, [], null]) {
      expect(check(rules, functionId)).toMatchObject({ decision: "deny", rule_id: expect.stringMatching(/^kernel:/) });
    }
  });

  it.each(["session-tree::messages", "budget::usage", "models::list", "demo::refund", "runner::start", "agents::x"])(
    "leaves %s to the file",
    (functionId) => {
      expect(check(allowAll, functionId)).toEqual({ decision: "allow", rule_id: "*" });
      expect(check([], functionId)).toEqual({ decision: "needs_approval" });
    },
  );

  it("lets nothing through while no file could be loaded (I8)", () => {
    expect(check(null, "demo::echo")).toMatchObject({ decision: "deny", rule_id: "permissions-file" });
  });
});

describe("the shipped file", () => {
  const { rules, warnings } = parsePermissions(
    readFileSync(new URL("../../permissions.yaml", import.meta.url), "utf8"),
  );

  it("has no warnings", () => {
    expect(warnings).toEqual([]);
  });

  it.each([
    ["demo::echo", "allow"],
    ["demo::effects", "allow"],
    ["demo::refund", "needs_approval"],
    ["models::list", "allow"],
    ["models::register", "needs_approval"],
    ["directory::engine::functions", "allow"],
    ["directory::skills::get", "allow"],
    ["directory::skills::download", "needs_approval"],
    ["sandbox::exec", "needs_approval"],
    ["run::start", "deny"],
    ["auth::get_token", "deny"],
  ])("gives %s the verdict %s", (functionId, decision) => {
    expect(check(rules, functionId).decision).toBe(decision);
  });
});
