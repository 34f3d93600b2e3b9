import { describe, expect, it } from "vitest";
import { checkTriggerable } from "./trigger-rules.ts";

const codeOf = (functionId: string, isOffered: boolean): string | null => {
  try {
    checkTriggerable(functionId, isOffered);
    return null;
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("functions a client may call", () => {
  it.each([
    "run::start",
    "run::abort",
    "turn::get_state",
    "approval::resolve",
    "session-tree::messages",
    "session-inbox::push",
    "models::list",
    "demo::effects",
    "provider::scripted::calls",
  ])("allows %s", (id) => {
    expect(codeOf(id, true)).toBeNull();
    expect(codeOf(id, false)).toBe("FUNCTION_NOT_FOUND");
  });

  it.each([
    "auth::get_token",
    "policy::check_permissions",
    "agent::trigger",
    "turn::step",
    "provider::scripted::stream",
    "ui::subscribe",
    "harness::trigger",
  ])("forbids %s, offered or not", (id) => {
    expect(codeOf(id, true)).toBe("FORBIDDEN");
    expect(codeOf(id, false)).toBe("FORBIDDEN");
  });

  it("forbids a function that is not on the list and does not know one that nobody offers", () => {
    expect(codeOf("acme::tool", true)).toBe("FORBIDDEN");
    expect(codeOf("acme::tool", false)).toBe("FUNCTION_NOT_FOUND");
  });
});
