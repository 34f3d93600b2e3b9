// Denial envelopes: what each maker says, and that quoted arguments give nothing away.
import { describe, expect, it } from "vitest";
import { denialByPolicy, denialByUser, gateUnavailable, redactArguments } from "./denial.ts";

describe("redactArguments", () => {
  it.each([
    "password",
    "PASSWORD",
    "db_password",
    "token",
    "api_key",
    "apikey",
    "apiKey",
    "X-Api-Key",
    "client_secret",
    "auth",
    "proxy_Authorization",
    "aws_access_key",
    "accessToken",
    "refresh_token",
    "SSHPrivateKey",
  ])("hides the whole value of the key %s (I13)", (key) => {
    expect(redactArguments({ [key]: { nested: "s3cret" } })).toEqual({ [key]: "<redacted>" });
  });

  it.each(["tokens", "tokenizer", "author", "secretary", "key", "passwords", "authority"])(
    "leaves the harmless key %s alone",
    (key) => {
      expect(redactArguments({ [key]: "shown" })).toEqual({ [key]: "shown" });
    },
  );

  it("hides secrets inside arrays and nested objects", () => {
    expect(redactArguments({ list: [{ inner: { token: "abc" } }] })).toEqual({
      list: [{ inner: { token: "<redacted>" } }],
    });
  });

  it("clips a long string to 256 code points and an ellipsis, never inside a surrogate pair", () => {
    expect(redactArguments("x".repeat(256))).toBe("x".repeat(256));
    expect(redactArguments("x".repeat(257))).toBe(`${"x".repeat(256)}…`);
    expect(redactArguments("😀".repeat(256))).toBe("😀".repeat(256));
    expect(redactArguments("😀".repeat(300))).toBe(`${"😀".repeat(256)}…`);
  });

  it("replaces what is nested deeper than 64 levels", () => {
    let deep: unknown = "bottom";
    for (let level = 0; level < 70; level++) deep = { d: deep };
    let at: unknown = redactArguments(deep);
    let levels = 0;
    while (typeof at === "object" && at !== null) {
      at = (at as { d: unknown }).d;
      levels++;
    }
    expect([levels, at]).toEqual([64, "<max-depth>"]);
  });

  it("does not change its input and keeps a key named __proto__ as data", () => {
    const input = Object.freeze(JSON.parse('{"__proto__":{"token":"t"},"a":["x"]}') as Record<string, unknown>);
    const before = JSON.stringify(input);
    const output = redactArguments(input) as Record<string, unknown>;
    expect(JSON.stringify(input)).toBe(before);
    expect(JSON.stringify(output)).toBe('{"__proto__":{"token":"<redacted>"},"a":["x"]}');
    expect(Object.getPrototypeOf(output)).toBe(Object.prototype);
  });
});

describe("denialByPolicy", () => {
  it("names the function and the rule, and advises another function when no constraint decided", () => {
    const verdict = { decision: "deny", rule_id: "no-shell", rule_action: "deny" } as const;
    expect(denialByPolicy("shell::exec", verdict, { command: "ls", token: "t" })).toEqual({
      schema_version: 1,
      status: "denied",
      denied_by: "permissions",
      function_id: "shell::exec",
      rule_id: "no-shell",
      rule_action: "deny",
      args_excerpt: { command: "ls", token: "<redacted>" },
      reason: "Permission denied: shell::exec matched rule no-shell. Use another function.",
    });
  });

  it("quotes the constraint that matched and advises other arguments", () => {
    const constraint = { field: "command", operator: "matches", value: "^rm" };
    const envelope = denialByPolicy(
      "shell::exec",
      { decision: "deny", rule_id: "no-rm", rule_action: "deny", matched_constraint: constraint },
      { command: "rm -rf /" },
    );
    expect(envelope.matched_constraint).toEqual(constraint);
    expect(envelope.reason).toBe(
      'Permission denied: shell::exec matched rule no-rm: command matches "^rm". Other arguments may be allowed.',
    );
  });

  it("adds the reason of the verdict", () => {
    const verdict = { decision: "deny", rule_id: "kernel:run::*", rule_action: "deny", reason: "reserved" } as const;
    expect(denialByPolicy("run::start", verdict, {}).reason).toContain("kernel:run::* (reserved)");
  });

  it("does not send a megabyte of arguments back to the model", () => {
    const verdict = { decision: "deny", rule_id: "r", rule_action: "deny" } as const;
    const envelope = denialByPolicy("a::b", verdict, { list: new Array(100_000).fill("0123456789") });
    expect(envelope.args_excerpt).toMatch(/^<\d+ bytes of arguments>$/);
  });
});

describe("the other makers", () => {
  it("holds the reason a person gave, or says who rejected it", () => {
    expect(denialByUser("demo::refund", " too much ", { amount: 5 })).toEqual({
      schema_version: 1,
      status: "denied",
      denied_by: "user",
      function_id: "demo::refund",
      args_excerpt: { amount: 5 },
      reason: "too much",
    });
    for (const none of [null, undefined, "", "  "]) {
      expect(denialByUser("demo::refund", none, {}).reason).toBe("Rejected by operator.");
    }
  });

  it("says that the gate could not be asked (I8)", () => {
    expect(gateUnavailable("demo::echo", "policy unreachable: TIMEOUT")).toEqual({
      schema_version: 1,
      status: "denied",
      denied_by: "gate_unavailable",
      function_id: "demo::echo",
      reason: "policy unreachable: TIMEOUT",
    });
  });
});
