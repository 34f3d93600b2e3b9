import { describe, expect, it } from "vitest";
import { nearest } from "./nearest.ts";

describe("nearest", () => {
  const known = ["demo::echo", "demo::lookup", "policy::check_permissions"];

  it.each([
    ["demo::eco", "demo::echo"],
    ["demo::look_up", "demo::lookup"],
    ["policy::check_permission", "policy::check_permissions"],
  ])("takes %s for a slip of %s", (asked, meant) => {
    expect(nearest(asked, known)).toBe(meant);
  });

  it("guesses nothing when nothing is similar", () => {
    expect(nearest("shell::exec", known)).toBeNull();
    expect(nearest("demo::echo", [])).toBeNull();
  });
});
