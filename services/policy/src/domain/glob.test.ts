// Globs over function ids.
import { expect, it } from "vitest";
import { matchesGlob } from "./glob.ts";

it.each([
  ["demo::echo", "demo::echo", true],
  ["demo::echo", "demo::echo2", false],
  ["demo::echo", "xdemo::echo", false],
  ["demo::*", "demo::echo", true],
  ["demo::*", "demo::a::b::c", true],
  ["demo::*", "demo::", true],
  ["demo::*", "demo", false],
  ["demo::*", "demos::echo", false],
  ["*", "any::thing::at::all", true],
  ["*::list", "models::list", true],
  ["*::list", "directory::skills::list", true],
  ["*::list", "models::listing", false],
  ["directory::*::get", "directory::skills::get", true],
  ["directory::*::get", "directory::get", false],
  ["a*b*c", "aXbYbZc", true],
  ["a*b*c", "aXcYb", false],
  ["**", "x::y", true],
  ["demo.::echo", "demox::echo", false],
  ["", "a::b", false],
])("the pattern %s on %s gives %s", (pattern, id, expected) => {
  expect(matchesGlob(pattern, id)).toBe(expected);
});

it("answers at once for a pattern of many stars on an id that nearly matches", () => {
  const started = performance.now();
  expect(matchesGlob(`${"a*".repeat(60)}b`, "a".repeat(320))).toBe(false);
  expect(performance.now() - started).toBeLessThan(50);
});
