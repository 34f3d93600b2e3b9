// policy::check_permissions
import { policyCheckPermissions } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import { decide } from "../domain/decide.ts";
import type { RegexTester, Rule } from "../domain/rules.ts";

export interface CheckDeps {
  /** Contract: null while no permissions file could be loaded. */
  readonly rules: () => readonly Rule[] | null;
  readonly test: RegexTester;
}

export function makeCheckPermissions(deps: CheckDeps) {
  return implement(policyCheckPermissions, (_context, request) =>
    decide(deps.rules(), { functionId: request.function_id, args: request.args }, deps.test),
  );
}
