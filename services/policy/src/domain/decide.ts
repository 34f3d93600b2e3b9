// The verdict on one call: the kernel first, then the rules in force, and a denial while there are none (I8).
import type { PolicyVerdict } from "@flotilla/contracts";
import { kernelVerdict } from "./kernel.ts";
import { type Call, evaluate, type RegexTester, type Rule } from "./rules.ts";

/** `rules` is null while no permissions file could be loaded. */
export function decide(rules: readonly Rule[] | null, call: Call, test: RegexTester): PolicyVerdict {
  const kernel = kernelVerdict(call.functionId);
  if (kernel !== null) return kernel;
  if (rules !== null) return evaluate(rules, call, test);
  return {
    decision: "deny",
    rule_id: "permissions-file",
    rule_action: "deny",
    reason: "no permissions file could be loaded, so everything is denied until an operator repairs it",
  };
}
