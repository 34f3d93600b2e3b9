// How a bad request is explained.
import { defineFunction } from "@flotilla/contracts";
import { isFlotillaError } from "@flotilla/errors";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { validateRequest } from "./validate.ts";

const contract = defineFunction({
  id: "probe::one",
  description: "One.",
  request: z.strictObject({
    name: z.string(),
    list: z.array(z.object({ id: z.number() })).optional(),
    body: z
      .union([z.object({ kind: z.literal("text"), text: z.string() }), z.object({ kind: z.literal("none") })])
      .optional(),
  }),
  response: z.null(),
});

function problemOf(payload: unknown): unknown {
  try {
    validateRequest(contract, payload);
  } catch (error) {
    return isFlotillaError(error) ? error.toBody() : error;
  }
  return undefined;
}

describe("validateRequest", () => {
  it("returns what the schema makes of a good request", () => {
    expect(validateRequest(contract, { name: "a" })).toEqual({ name: "a" });
  });

  it("names the first field as a dotted path, and tells all problems", () => {
    expect(problemOf({ list: [{ id: 1 }, { id: "hunter2" }] })).toEqual({
      code: "INVALID_INPUT",
      message: "name: is required; list.1.id: Invalid input: expected number, received string",
      field: "name",
    });
    expect(problemOf({ name: "a", list: [{ id: "hunter2" }] })).toMatchObject({ field: "list.0.id" });
  });

  it("names an unknown key, and the field inside the branch of a union that was meant", () => {
    expect(problemOf({ name: "a", hunter: 2 })).toMatchObject({ code: "INVALID_INPUT", field: "hunter" });
    expect(problemOf({ name: "a", body: { kind: "text" } })).toMatchObject({ field: "body.text" });
  });

  it("has no field when the whole request is wrong", () => {
    expect(problemOf("hunter2")).toEqual({
      code: "INVALID_INPUT",
      message: "Invalid input: expected object, received string",
    });
  });
});
