// What defineWorker refuses.
import { defineFunction } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineWorker } from "./define-worker.ts";
import { implement } from "./implement.ts";

const probe = implement(
  defineFunction({ id: "probe::one", description: "One.", request: z.object({}), response: z.null() }),
  () => null,
);

describe("defineWorker", () => {
  it("fills defaults", () => {
    expect(defineWorker({ name: "w", version: "1.0.0", functions: [probe] })).toEqual({
      name: "w",
      version: "1.0.0",
      functions: [probe],
      background: [],
      priority: 0,
      drainSeconds: 300,
    });
  });

  it("refuses a bad name, a bad version, and anything given twice", () => {
    const part = { name: "p", start: async () => {}, stop: async () => {} };
    expect(() => defineWorker({ name: "a.b", version: "1.0.0" })).toThrow("not a worker name: a.b");
    expect(() => defineWorker({ name: "w", version: "v1" })).toThrow("not a semantic version: v1");
    expect(() => defineWorker({ name: "w", version: "1.0.0", functions: [probe, probe] })).toThrow(
      "function probe::one is given twice",
    );
    expect(() => defineWorker({ name: "w", version: "1.0.0", background: [part, part] })).toThrow(
      "background p is given twice",
    );
  });
});
