// A request against its schema: the first problem names the field, and no message repeats a value.
import type { FunctionContract } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { z } from "zod";

export function validateRequest(contract: FunctionContract, payload: unknown): unknown {
  const parsed = contract.request.safeParse(payload);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => problemOf(issue));
  const [first] = problems;
  const message = problems.map(({ field, text }) => (field === undefined ? text : `${field}: ${text}`)).join("; ");
  throw new FlotillaError("INVALID_INPUT", message.slice(0, 1_000), { field: first?.field });
}

interface Problem {
  readonly field: string | undefined;
  readonly text: string;
}

function problemOf(issue: z.core.$ZodIssue, prefix: readonly PropertyKey[] = []): Problem {
  const path = [...prefix, ...issue.path];
  const inner = issue.code === "invalid_union" ? deepest(issue.errors) : undefined;
  if (inner !== undefined) return problemOf(inner, path);
  const unknownKey = issue.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const full = unknownKey === undefined ? path : [...path, unknownKey];
  const isMissing = issue.code === "invalid_type" && issue.message.endsWith("received undefined");
  return {
    field: full.length === 0 ? undefined : full.map(String).join("."),
    text: isMissing ? "is required" : issue.message,
  };
}

/** The branch of a union that got furthest is the one that was meant. */
function deepest(branches: readonly (readonly z.core.$ZodIssue[])[]): z.core.$ZodIssue | undefined {
  const firsts = branches.map((issues) => issues[0]).filter((issue) => issue !== undefined);
  const best = firsts.reduce<z.core.$ZodIssue | undefined>(
    (found, issue) => (found === undefined || issue.path.length > found.path.length ? issue : found),
    undefined,
  );
  return best !== undefined && best.path.length > 0 ? best : undefined;
}
