// The compiled form of a permissions file, and the verdict it gives on one call. Pure.
import { canonicalJson, type PolicyVerdict } from "@flotilla/contracts";
import { matchesGlob } from "./glob.ts";

export type Action = "allow" | "deny" | "needs_approval";

export type Constraint =
  | { readonly field: string; readonly operator: "equals"; readonly value: unknown; readonly canonical: string }
  | { readonly field: string; readonly operator: "matches"; readonly value: string; readonly pattern: RegExp };

export interface Rule {
  readonly ruleId: string;
  /** Function id, with `*` for any run of characters. */
  readonly pattern: string;
  readonly action: Action;
  readonly reason: string | undefined;
  /** Sorted by field name; all must hold, otherwise the rule is passed over. */
  readonly constraints: readonly Constraint[];
}

/** `unsure`: the pattern could not be tried to the end. */
export type RegexTester = (pattern: RegExp, text: string) => boolean | "unsure";

export interface Call {
  readonly functionId: string;
  readonly args: Readonly<Record<string, unknown>>;
}

function holds(constraint: Constraint, args: Call["args"], test: RegexTester): boolean | "unsure" {
  if (!Object.hasOwn(args, constraint.field)) return false;
  const value = args[constraint.field];
  if (constraint.operator === "equals") return canonicalJson(value) === constraint.canonical;
  return typeof value === "string" && test(constraint.pattern, value);
}

function deny(rule: Rule, constraint: Constraint | undefined, reason: string | undefined): PolicyVerdict {
  return {
    decision: "deny",
    rule_id: rule.ruleId,
    rule_action: "deny",
    ...(constraint === undefined
      ? {}
      : {
          matched_constraint: { field: constraint.field, operator: constraint.operator, value: constraint.value },
        }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function verdictOf(rule: Rule): PolicyVerdict {
  if (rule.action === "allow") return { decision: "allow", rule_id: rule.ruleId };
  if (rule.action === "deny") return deny(rule, rule.constraints[0], rule.reason);
  return { decision: "needs_approval", ...(rule.reason === undefined ? {} : { reason: rule.reason }) };
}

/** First match wins; a call that no rule matches needs approval. */
export function evaluate(rules: readonly Rule[], call: Call, test: RegexTester): PolicyVerdict {
  for (const rule of rules) {
    if (!matchesGlob(rule.pattern, call.functionId)) continue;
    let matched = true;
    for (const constraint of rule.constraints) {
      const held = holds(constraint, call.args, test);
      // I8: whether a rule applies must be known; passing over a deny or trusting an allow would be a guess.
      if (held === "unsure") return deny(rule, constraint, "the constraint could not be checked on this value");
      matched &&= held;
      if (!matched) break;
    }
    if (matched) return verdictOf(rule);
  }
  return { decision: "needs_approval" };
}
