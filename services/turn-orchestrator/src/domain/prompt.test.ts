import { FunctionManifest } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { aRequest } from "./domain.builders.ts";
import { offeredTools } from "./prompt.ts";

const ids = ["demo::echo", "demo::ship", "session-tree::append", "session-tree::append_batch"];
const manifests = ids.map((id) => FunctionManifest.parse({ id }));

function offered(functions: string[]): string[] {
  return offeredTools(aRequest({ functions }), manifests)
    .map((tool) => tool.name)
    .filter((name) => name.includes("::"));
}

describe("the functions that a run names", () => {
  it.each([
    ["demo::echo", ["demo::echo"]],
    ["demo::*", ["demo::echo", "demo::ship"]],
    ["*::append", ["session-tree::append"]],
    ["*::a*d*", ["session-tree::append", "session-tree::append_batch"]],
    ["*", ids],
    ["demo::echo*echo", []],
    ["demo", []],
    ["Demo::*", []],
  ])("%s", (pattern, expected) => {
    expect(offered([pattern])).toEqual(expected);
  });

  it("are offered once each, in the order of the patterns", () => {
    expect(offered(["demo::ship", "demo::*"])).toEqual(["demo::ship", "demo::echo"]);
  });

  it("are found at once whatever the pattern: one of many stars does not stop the orchestrator", () => {
    const startedAt = performance.now();
    expect(offered([`${"*".repeat(200)}x`, `${"*a".repeat(150)}*x`])).toEqual([]);
    expect(performance.now() - startedAt).toBeLessThan(200);
  });
});
