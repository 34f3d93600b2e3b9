import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { credentialOf, parseStore } from "./parse-store.ts";

const secret = "sk-very-secret-1234567890";

describe("the credentials file", () => {
  it("holds keys, bare or as objects, and OAuth tokens", () => {
    const oauth = { type: "oauth", access_token: secret, refresh_token: "r", expires_at: 5 };
    const parsed = parseStore(JSON.stringify({ a: secret, b: { type: "api_key", key: secret }, c: oauth }));
    if (!parsed.ok) throw new Error(parsed.problem);
    const credentials = [...parsed.stored].map(([provider, entry]) => [provider, credentialOf(entry)]);
    expect(credentials).toEqual([
      ["a", { type: "api_key", key: secret }],
      ["b", { type: "api_key", key: secret }],
      ["c", oauth],
    ]);
  });

  it("does not show its secrets when printed or serialised (I13)", () => {
    const parsed = parseStore(JSON.stringify({ a: secret }));
    const shown = inspect(parsed, { depth: 9 }) + (parsed.ok ? JSON.stringify([...parsed.stored]) : "");
    expect(shown).not.toContain(secret);
  });

  it.each([
    [`{"a": ${secret}}`, "is no JSON"],
    [`["${secret}"]`, "must be an object of credentials by provider"],
    [`{"a": {"type": "api_key", "token": "${secret}"}}`, "the entry of a must be"],
    [`{"a": {"type": "${secret}"}}`, "the entry of a must be"],
    ['{"a": ""}', "the entry of a must be"],
  ])("is refused with a reason that quotes nothing of it: %#", (text, problem) => {
    const parsed = parseStore(text);
    expect(parsed).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
    expect(JSON.stringify(parsed)).not.toContain(secret);
  });
});
