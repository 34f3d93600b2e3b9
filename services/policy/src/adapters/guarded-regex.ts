// Trying a rule's regular expression on an argument, with a bound on length and time.
import { createContext, Script } from "node:vm";
import type { RegexTester } from "../domain/rules.ts";

export interface GuardOptions {
  /** Texts longer than this are not tried. @default 65536 */
  readonly maxLength?: number;
  /** An agent chooses the text, so a pattern that backtracks must not stop the worker. @default 50 */
  readonly timeoutMs?: number;
}

/** By its code: the error may come from the realm of the script, so it need not be an instance of our Error. */
function isTimeout(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}

export function createGuardedTester(options: GuardOptions = {}): RegexTester {
  const { maxLength = 65_536, timeoutMs = 50 } = options;
  const scope: { pattern: RegExp; text: string } = { pattern: /^/, text: "" };
  const context = createContext(scope);
  // Only a vm script can be interrupted in the middle of a match.
  const script = new Script("pattern.test(text)");
  return (pattern, text) => {
    if (text.length > maxLength) return "unsure";
    scope.pattern = pattern;
    scope.text = text;
    try {
      return script.runInContext(context, { timeout: timeoutMs }) === true;
    } catch (error) {
      if (isTimeout(error)) return "unsure";
      throw error;
    }
  };
}
