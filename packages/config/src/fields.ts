// Zod fields for environment variables: numbers with a unit, switches, lists, secrets.
import { z } from "zod";
import { Secret } from "./secret.ts";

const wholeNumber = /^-?\d+$/;

/** A whole number within the bounds. */
export function integer(options: { min?: number; max?: number } = {}) {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = options;
  const problem = max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `from ${min} to ${max}`;
  return z
    .string()
    .trim()
    .refine((text) => wholeNumber.test(text) && Number(text) >= min && Number(text) <= max, {
      message: `must be a whole number, ${problem}`,
    })
    .transform(Number);
}

/** Milliseconds; `fallback` when the variable is not set. */
export function milliseconds(fallback: number, options: { min?: number; max?: number } = {}) {
  return integer(options).default(fallback);
}

export function seconds(fallback: number, options: { min?: number; max?: number } = {}) {
  return integer(options).default(fallback);
}

export function port() {
  return integer({ min: 0, max: 65_535 });
}

/** Name switches so that off is the default. */
export function flag(fallback = false) {
  return z.stringbool({ error: "must be true or false" }).default(fallback);
}

/** Comma-separated; blanks are dropped. */
export function list(fallback: readonly string[] = []) {
  return z
    .string()
    .transform((text) =>
      text
        .split(",")
        .map((item) => item.trim())
        .filter((item) => item !== ""),
    )
    .default([...fallback]);
}

/** A value that must not be printed. `X_FILE` names a file that is read on every use. */
export function secret() {
  return z.union([z.instanceof(Secret), z.string().min(1).transform(Secret.of)], { error: "must not be empty" });
}
