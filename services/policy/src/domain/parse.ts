// From the text of a permissions file to rules.
import { FlotillaError } from "@flotilla/errors";
import { parseDocument } from "yaml";
import { type CompiledRules, compileRules } from "./compile.ts";

/** Contract: throws POLICY_INVALID with the line, or with the rule and the field. */
export function parsePermissions(text: string): CompiledRules {
  const document = parseDocument(text, { prettyErrors: true });
  // A warning is a `!name` without quotes, read as a YAML tag: the deny it was meant to be would be lost.
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) {
    throw new FlotillaError("POLICY_INVALID", problem.message.split("\n", 1)[0] ?? problem.message, { cause: problem });
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    throw new FlotillaError("POLICY_INVALID", (cause as Error).message, { cause });
  }
  return compileRules(value);
}
