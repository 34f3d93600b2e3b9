// Names of tools, schemas of tools, endpoints and prices: the small pure parts.
import { describe, expect, it } from "vitest";
import { endpointOf } from "./base-url.ts";
import { usageOf } from "./pricing.ts";
import { createToolNames } from "./tool-names.ts";
import { toolSchema } from "./tool-schema.ts";

describe("tool names", () => {
  it("are legal, unique and lead back to their ids", () => {
    const ids = ["a::b", "a__b", "a.b", "a b", "a-b", "", "ü", "::", `x::${"y".repeat(90)}`, `x::${"y".repeat(91)}`];
    const names = createToolNames(ids);
    const wire = ids.map((id) => names.wireName(id));
    expect(new Set(wire).size).toBe(ids.length);
    for (const [n, name] of wire.entries()) {
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(names.functionId(name)).toBe(ids[n]);
    }
    expect(wire.slice(0, 2)).toEqual(["a__b", expect.stringMatching(/^a__b_[0-9a-f]{8}$/)]);
  });

  it("pass an invented one on, and take an id that was not offered", () => {
    const names = createToolNames(["a::b"]);
    expect(names.functionId("made_up")).toBe("made_up");
    expect(names.functionId(names.wireName("old::one"))).toBe("old::one");
  });
});

describe("toolSchema", () => {
  it("is an object whatever came", () => {
    expect(toolSchema({})).toEqual({ type: "object", properties: {} });
    expect(
      toolSchema({
        $schema: "x",
        type: "object",
        properties: { a: { type: "string" } },
        required: ["a"],
        additionalProperties: false,
      }),
    ).toEqual({
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
      additionalProperties: false,
    });
  });

  it("offers the properties of all variants and requires what each needs", () => {
    const schema = toolSchema({
      oneOf: [
        { type: "object", properties: { kind: { const: "a" }, x: { type: "string" } }, required: ["kind", "x"] },
        { type: "object", properties: { kind: { const: "b" }, y: { type: "number" } }, required: ["kind", "y"] },
      ],
    });
    expect(schema).toEqual({
      type: "object",
      properties: { kind: { anyOf: [{ const: "a" }, { const: "b" }] }, x: { type: "string" }, y: { type: "number" } },
      required: ["kind"],
    });
  });

  it("requires what any part of an intersection needs", () => {
    const part = (name: string) => ({ type: "object", properties: { [name]: {} }, required: [name] });
    expect(toolSchema({ allOf: [part("a"), part("b")] }).required).toEqual(["a", "b"]);
  });
});

describe("endpointOf", () => {
  it.each([
    ["https://api.example", "https://api.example/v1/messages"],
    ["https://api.example/", "https://api.example/v1/messages"],
    ["https://api.example/v1", "https://api.example/v1/messages"],
    ["https://api.example/v1/", "https://api.example/v1/messages"],
    ["https://api.example/v1/messages", "https://api.example/v1/messages"],
    ["https://api.example/anthropic", "https://api.example/anthropic/v1/messages"],
    ["https://api.example/api/paas/v4", "https://api.example/api/paas/v4/messages"],
    ["https://api.example/v1beta/openai", "https://api.example/v1beta/openai/messages"],
    ["http://127.0.0.1:8080/v1?key=x", "http://127.0.0.1:8080/v1/messages?key=x"],
  ])("%s", (base, endpoint) => {
    expect(endpointOf(base, "/messages")).toBe(endpoint);
  });
});

describe("usageOf", () => {
  const counts = { input: 10, output: 50, cache_read: 20_000, cache_write: 3_000, cache_write_1h: 2_000 };
  const pricing = { input_per_1m: 3, output_per_1m: 15, cache_read_per_1m: 0.3, cache_write_per_1m: 3.75 };

  it("charges writes that live for an hour apart where the catalog has a price for them", () => {
    expect(usageOf(counts, pricing).cost_microusd).toBe(18_030);
    expect(usageOf(counts, { ...pricing, cache_write_1h_per_1m: 6 })).toMatchObject({
      cost_microusd: 22_530,
      cost_usd: 0.02253,
    });
  });

  it("has no cost without prices", () => {
    expect(usageOf(counts, undefined)).toEqual({ input: 10, output: 50, cache_read: 20_000, cache_write: 3_000 });
  });
});
