import { describe, expect, it } from "vitest";
import { RecentBodies } from "./recent-bodies.ts";

describe("RecentBodies", () => {
  it("forgets the least recently used first", () => {
    const bodies = new RecentBodies(12);
    for (const name of ["a", "b", "c", "d"]) bodies.set(name, new Uint8Array(3));
    bodies.get("a");
    bodies.set("e", new Uint8Array(3));
    expect(["a", "b", "e"].map((name) => bodies.get(name) !== undefined)).toEqual([true, false, true]);
  });

  it("does not keep a body that would push out most of the others", () => {
    const bodies = new RecentBodies(12);
    bodies.set("small", new Uint8Array(3));
    bodies.set("large", new Uint8Array(4));
    expect([bodies.get("small") !== undefined, bodies.get("large")]).toEqual([true, undefined]);
  });
});
