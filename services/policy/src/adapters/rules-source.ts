// The rules in force: read from the first permissions file that exists, again whenever it changes.
//
// R1 A file that cannot be read or parsed changes nothing: the last good rules stay, and readiness says so.
// R2 Without any good rules yet, there are none (null), and the caller denies everything (I8).
// R3 A change counts once it was seen twice: a file in the middle of being written, or replaced, is not rules.
import { ensureFlotillaError, FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { CompiledRules } from "../domain/compile.ts";
import { parsePermissions } from "../domain/parse.ts";
import type { Rule } from "../domain/rules.ts";

export type FileRead = { kind: "text"; text: string } | { kind: "missing" } | { kind: "unreadable"; message: string };

export interface RulesSourceDeps {
  /** In order of precedence. */
  readonly paths: readonly string[];
  readonly read: (path: string) => Promise<FileRead>;
  readonly logger: Logger;
  readonly onOutcome: (outcome: "loaded" | "rejected") => void;
}

export interface RulesSource {
  /** Looks at the files once; the first time what is found counts at once. */
  poll(): Promise<void>;
  rules(): readonly Rule[] | null;
  /** Why the newest file is not in force, or null. */
  problem(): string | null;
}

interface Seen {
  readonly path: string;
  readonly file: FileRead;
}

function unusable(why: string): FlotillaError {
  return new FlotillaError("POLICY_INVALID", why);
}

function isSame(a: Seen | null, b: Seen): boolean {
  return a !== null && a.path === b.path && JSON.stringify(a.file) === JSON.stringify(b.file);
}

export function createRulesSource(deps: RulesSourceDeps): RulesSource {
  let rules: readonly Rule[] | null = null;
  let problem: string | null = null;
  let lastSeen: Seen | null = null;
  let inForce: Seen | null = null;

  async function look(): Promise<Seen> {
    let seen: Seen = { path: "(none)", file: { kind: "missing" } };
    for (const path of deps.paths) {
      seen = { path, file: await deps.read(path) };
      if (seen.file.kind !== "missing") break;
    }
    return seen;
  }

  function reject(path: string, why: string): void {
    problem = `${path}: ${why}`;
    deps.logger.error("the permissions file is not usable; the last good rules stay in force", {
      path,
      problem: why,
      has_rules: rules !== null,
    });
    deps.onOutcome("rejected");
  }

  function compile({ path, file }: Seen): CompiledRules {
    if (file.kind === "missing") throw unusable("the file does not exist");
    if (file.kind === "unreadable") throw unusable(file.message);
    const compiled = parsePermissions(file.text);
    for (const warning of compiled.warnings) deps.logger.warn("a permission rule looks wrong", { path, warning });
    return compiled;
  }

  function take(seen: Seen): void {
    try {
      rules = compile(seen).rules;
      problem = null;
      deps.logger.info("permissions are in force", { path: seen.path, rules: rules.length });
      deps.onOutcome("loaded");
    } catch (error) {
      reject(seen.path, ensureFlotillaError(error).message);
    }
  }

  return {
    async poll() {
      const seen = await look();
      const isFirst = lastSeen === null;
      const isSettled = isFirst || isSame(lastSeen, seen);
      lastSeen = seen;
      if (!isSettled || isSame(inForce, seen)) return;
      inForce = seen;
      take(seen);
    },
    rules: () => rules,
    problem: () => problem,
  };
}
