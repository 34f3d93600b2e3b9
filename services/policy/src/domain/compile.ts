// From the parsed permissions file to rules; every error names the rule's index and the field.
import { canonicalJson, functionIdPattern } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { Action, Constraint, Rule } from "./rules.ts";

export interface CompiledRules {
  readonly rules: readonly Rule[];
  /** What looks like a mistake and is none that stops the file. */
  readonly warnings: readonly string[];
}

const actions: readonly string[] = ["allow", "deny", "needs_approval"] satisfies Action[];
const patternGrammar = /^[A-Za-z0-9_:*-]+$/;

function invalid(message: string): FlotillaError {
  return new FlotillaError("POLICY_INVALID", message);
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function onlyKeys(value: Record<string, unknown>, allowed: readonly string[], where: string): void {
  const odd = Object.keys(value).find((key) => !allowed.includes(key));
  if (odd !== undefined) throw invalid(`${where}: unknown key ${odd} (known: ${allowed.join(", ")})`);
}

function compilePattern(value: unknown, where: string): string {
  if (typeof value !== "string" || !patternGrammar.test(value)) {
    throw invalid(`${where}: must be a function id like namespace::name, in which * matches any run of characters`);
  }
  return value;
}

function optionalText(value: unknown, where: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value.trim() === "") throw invalid(`${where}: must be a text that is not empty`);
  return value;
}

function compileEquals(field: string, value: unknown, where: string): Constraint {
  try {
    return { field, operator: "equals", value, canonical: canonicalJson(value) };
  } catch (cause) {
    throw new FlotillaError("POLICY_INVALID", `${where}.equals: must be a JSON value`, { cause });
  }
}

function compileMatches(field: string, value: unknown, where: string): Constraint {
  if (typeof value !== "string") throw invalid(`${where}.matches: must be a regular expression as text`);
  try {
    return { field, operator: "matches", value, pattern: new RegExp(value) };
  } catch (cause) {
    throw new FlotillaError("POLICY_INVALID", `${where}.matches: ${(cause as Error).message}`, { cause });
  }
}

function compileConstraint(field: string, value: unknown, where: string): Constraint {
  if (!isMapping(value)) throw invalid(`${where}: must be {equals: <value>} or {matches: <regular expression>}`);
  onlyKeys(value, ["equals", "matches"], where);
  if (Object.hasOwn(value, "equals")) return compileEquals(field, value.equals, where);
  if (Object.hasOwn(value, "matches")) return compileMatches(field, value.matches, where);
  throw invalid(`${where}: needs equals or matches`);
}

function compileConstraints(value: unknown, where: string): Constraint[] {
  if (value === undefined) return [];
  if (!isMapping(value)) throw invalid(`${where}: must be a mapping of argument names to constraints`);
  return Object.keys(value)
    .sort()
    .map((field) => compileConstraint(field, value[field], `${where}.${field}`));
}

function compileText(value: string, where: string): Rule {
  const denied = value.startsWith("!");
  const pattern = compilePattern(denied ? value.slice(1) : value, where);
  return { ruleId: pattern, pattern, action: denied ? "deny" : "allow", reason: undefined, constraints: [] };
}

function compileMapping(value: Record<string, unknown>, where: string): Rule {
  onlyKeys(value, ["function", "action", "rule_id", "reason", "args"], where);
  if (value.function === undefined) throw invalid(`${where}: function is missing`);
  const pattern = compilePattern(value.function, `${where}: function`);
  if (typeof value.action !== "string" || !actions.includes(value.action)) {
    throw invalid(`${where}: action must be one of ${actions.join(", ")}`);
  }
  return {
    ruleId: optionalText(value.rule_id, `${where}: rule_id`) ?? pattern,
    pattern,
    action: value.action as Action,
    reason: optionalText(value.reason, `${where}: reason`),
    constraints: compileConstraints(value.args, `${where}: args`),
  };
}

function compileRule(value: unknown, index: number): Rule {
  const where = `rule ${index}`;
  if (typeof value === "string" && value !== "") return compileText(value, where);
  if (isMapping(value)) return compileMapping(value, where);
  throw invalid(`${where}: must be a function id or a mapping (quote an id that begins with ! or *)`);
}

function warningsOf(rules: readonly Rule[]): string[] {
  const warnings: string[] = [];
  const firstIndex = new Map<string, number>();
  for (const [index, rule] of rules.entries()) {
    const first = firstIndex.get(rule.ruleId);
    if (first === undefined) firstIndex.set(rule.ruleId, index);
    else warnings.push(`rule ${index}: rule_id ${rule.ruleId} is already that of rule ${first}`);
    if (!rule.pattern.includes("*") && !functionIdPattern.test(rule.pattern)) {
      warnings.push(`rule ${index}: ${rule.pattern} is not a function id, so the rule never matches`);
    }
  }
  return warnings;
}

/** Contract: throws POLICY_INVALID for the first thing that is wrong; an empty file has no rules. */
export function compileRules(file: unknown): CompiledRules {
  if (file === null || file === undefined) return { rules: [], warnings: [] };
  if (!isMapping(file)) throw invalid("the file must be a mapping with version and rules");
  onlyKeys(file, ["version", "rules"], "the file");
  if (file.version !== undefined && file.version !== 1) throw invalid("version: must be 1");
  if (file.rules === undefined || file.rules === null) return { rules: [], warnings: [] };
  if (!Array.isArray(file.rules)) throw invalid("rules: must be a list");
  const rules = file.rules.map(compileRule);
  return { rules, warnings: warningsOf(rules) };
}
