import { describe, expect, it } from "vitest";
import { supports } from "./capabilities.ts";
import { Catalog } from "./catalog.ts";

const aModel = (id: string, fields: object = {}) => ({
  id,
  provider: "p",
  api: "x",
  display_name: id,
  context_window: 1000,
  ...fields,
});

describe("capabilities", () => {
  const able = aModel("able", {
    supports_thinking: true,
    supports_tools: true,
    supports_vision: true,
    supports_cache: true,
  });
  it.each(["thinking", "thinking:low", "thinking:medium", "thinking:high", "tools", "vision", "cache"])(
    "a model with the column has %s, one without has not",
    (capability) => {
      expect(supports(able, capability)).toBe(true);
      expect(supports(aModel("bare"), capability)).toBe(false);
    },
  );

  it("thinking:xhigh has a column of its own", () => {
    expect(supports(able, "thinking:xhigh")).toBe(false);
    expect(supports({ ...able, supports_xhigh: true }, "thinking:xhigh")).toBe(true);
  });

  it.each(["thinking:minimal", "streaming", "", "toString"])("nothing has %j", (capability) => {
    expect(supports({ ...able, supports_xhigh: true }, capability)).toBe(false);
  });
});

describe("the catalog", () => {
  const catalog = new Catalog([
    aModel("a", { supports_tools: true, pricing: { input_per_1m: 1, output_per_1m: 2 } }),
    aModel("b"),
  ]);

  it("lays an override over a known row and adds new ones", () => {
    const changed = catalog.overriddenBy([
      { provider: "p", id: "a", context_window: 5 },
      { ...aModel("a"), provider: "q" },
    ]);
    expect(changed.get("p", "a")).toEqual({
      ...aModel("a"),
      supports_tools: true,
      pricing: { input_per_1m: 1, output_per_1m: 2 },
      context_window: 5,
    });
    expect(changed.list({}).map((model) => `${model.provider}/${model.id}`)).toEqual(["p/a", "p/b", "q/a"]);
    expect(catalog.get("q", "a")).toBeNull();
  });

  it("refuses a new row that lacks a field", () => {
    expect(() => catalog.overriddenBy([{ provider: "p", id: "new", context_window: 5 }])).toThrow(/display_name/);
  });

  it("filters by provider and capability together", () => {
    expect(catalog.list({ provider: "p", capability: "tools" }).map((model) => model.id)).toEqual(["a"]);
    expect(catalog.list({ provider: "nobody" })).toEqual([]);
    expect(catalog.list({ capability: "telepathy" })).toEqual([]);
  });
});
