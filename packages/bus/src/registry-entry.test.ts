// Registry entries as other languages write them.
import { describe, expect, it } from "vitest";
import { isGoodbye, parseRegistryKey, readInstance, readManifest } from "./registry-entry.ts";

const bytes = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));

describe("readManifest", () => {
  it("fills in what a foreign worker leaves out, with the time of storing as its first registration", () => {
    const read = readManifest(bytes({ functions: [{ id: "shop::sell" }] }), "shop", 77);
    expect(read?.manifest).toMatchObject({ worker: "shop", priority: 0, first_registered_at: 77 });
    expect(read?.manifest.functions[0]).toMatchObject({ id: "shop::sell", replay: "never", timeout_ms: 30_000 });
  });

  it("keeps a first registration that is there", () => {
    expect(readManifest(bytes({ first_registered_at: 5 }), "shop", 77)?.manifest.first_registered_at).toBe(5);
  });

  it("leaves out only the functions that cannot be read, and names them", () => {
    const read = readManifest(bytes({ functions: [{ id: "shop::sell" }, { id: "Not An Id" }, 7] }), "shop", 1);
    expect(read?.manifest.functions.map((fn) => fn.id)).toEqual(["shop::sell"]);
    expect(read?.skipped).toEqual(["Not An Id", "(no id)"]);
  });

  it.each([["not json"], ["[1]"], ["null"], ['{"worker":"other"}'], ['{"priority":"high"}']])("refuses %s", (text) => {
    expect(readManifest(bytes(text), "shop", 1)).toBeNull();
  });
});

describe("readInstance", () => {
  it("takes worker and instance from the key when the record does not say", () => {
    expect(readInstance(bytes({}), "shop", "i1")).toEqual({ worker: "shop", instance: "i1", started_at: 0 });
  });

  it.each([["not json"], ['"i1"'], ['{"instance":"i2"}'], ['{"worker":"other"}']])("refuses %s", (text) => {
    expect(readInstance(bytes(text), "shop", "i1")).toBeNull();
  });
});

describe("the keys of the registry", () => {
  it("are a worker's or an instance's", () => {
    expect(parseRegistryKey("$KV.REGISTRY.worker.shop")).toEqual({ kind: "worker", worker: "shop" });
    const instance = { kind: "instance", worker: "shop", instance: "i1" };
    expect(parseRegistryKey("$KV.REGISTRY.inst.shop.i1")).toEqual(instance);
  });

  it.each(["$KV.REGISTRY.worker", "$KV.REGISTRY.worker.a.b", "$KV.REGISTRY.inst.a", "$KV.OTHER.worker.a", "x"])(
    "are not %s",
    (subject) => {
      expect(parseRegistryKey(subject)).toBeNull();
    },
  );

  it("are deleted by a marker or by an empty value", () => {
    expect([isGoodbye("DEL", bytes("{}")), isGoodbye("PURGE", bytes("{}")), isGoodbye("", bytes(""))]).toEqual([
      true,
      true,
      true,
    ]);
    expect(isGoodbye("", bytes("{}"))).toBe(false);
  });
});
