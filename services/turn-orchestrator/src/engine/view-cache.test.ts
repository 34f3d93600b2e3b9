import { emptyView, type SessionView } from "@flotilla/contracts";
import { userEntry } from "@flotilla/testkit";
import { describe, expect, it } from "vitest";
import { ViewCache } from "./view-cache.ts";

function aView(id: string, chars = 0): SessionView {
  const view = emptyView(id);
  if (chars > 0) grow(view, chars);
  return view;
}

function grow(view: SessionView, chars: number): void {
  view.entries.push(userEntry(`e${view.entries.length}`, "x".repeat(chars)));
}

const kept = (cache: ViewCache, ...ids: string[]): string[] => ids.filter((id) => cache.get(id) !== undefined);

describe("the cache of sessions", () => {
  it("forgets the one that was used longest ago", () => {
    const cache = new ViewCache(2);
    cache.put(aView("a"));
    cache.put(aView("b"));
    cache.get("a");
    cache.put(aView("c"));
    expect(kept(cache, "a", "b", "c")).toEqual(["a", "c"]);
  });

  it("keeps fewer when they are large, and the newest whatever its size", () => {
    const cache = new ViewCache(100, 10_000);
    for (const id of ["a", "b", "c"]) cache.put(aView(id, 4_000));
    expect(kept(cache, "a", "b", "c")).toEqual(["b", "c"]);
    cache.put(aView("d", 50_000));
    expect(kept(cache, "a", "b", "c", "d")).toEqual(["d"]);
  });

  it("counts what a session has grown by since its last use", () => {
    const cache = new ViewCache(100, 10_000);
    const growing = aView("b", 1_000);
    cache.put(aView("a", 1_000));
    cache.put(growing);
    grow(growing, 9_000);
    expect(kept(cache, "b")).toEqual(["b"]);
    expect(kept(cache, "a")).toEqual([]);
    cache.drop("b");
    cache.put(aView("c", 4_000));
    cache.put(aView("d", 4_000));
    expect(kept(cache, "c", "d")).toEqual(["c", "d"]);
  });
});
