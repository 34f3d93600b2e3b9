import { expect, it } from "vitest";
import { orderOf, referenceOf } from "./orders.ts";

it("an order is the same each time and differs between ids", () => {
  expect(orderOf("1001")).toEqual(orderOf("1001"));
  expect(orderOf("1001")).not.toEqual({ ...orderOf("1002"), order: "1001" });
  const { total } = orderOf("1001");
  expect(total).toBeGreaterThan(0);
});

it("a reference depends on every part", () => {
  expect(referenceOf("TR", "1", "k")).toBe(referenceOf("TR", "1", "k"));
  expect(referenceOf("TR", "1", "k")).not.toBe(referenceOf("TR", "1k", ""));
});
