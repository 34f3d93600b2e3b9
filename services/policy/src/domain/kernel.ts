// What an agent may never call, whatever the permissions file says. The file can narrow further, never widen.
import type { PolicyVerdict } from "@flotilla/contracts";
import { matchesGlob } from "./glob.ts";

/** Whole namespaces, so that a function added to one later is denied until somebody decides otherwise. */
export const kernelDenies: readonly string[] = [
  // The gates themselves: an agent must not decide about its own calls.
  "policy::*",
  "approval::*",
  "hook-fanout::*",
  "budget::*",
  // Turns and what is inside them: an agent must not start, stop or rewrite one.
  "run::*",
  "turn::*",
  "agent::*",
  "harness::*",
  "ui::*",
  "session-tree::*",
  "session-inbox::*",
  // Credentials (I13), and model calls past the budget and the transcript.
  "auth::*",
  "oauth::*",
  "provider::*",
  "router::*",
  // The store and the bus below the functions.
  "state::set",
  "state::update",
  "state::delete",
  "stream::set",
  "iii::*",
];

/** Look-ups inside denied namespaces: the file decides about them as about any other function. */
export const kernelExempt: readonly string[] = [
  "budget::check",
  "budget::forecast",
  "budget::get",
  "budget::list",
  "budget::usage",
  "session-tree::compactions",
  "session-tree::export_html",
  "session-tree::get",
  "session-tree::list",
  "session-tree::messages",
  "session-tree::tree",
];

/** The kernel's denial of a function, or null when the file decides. */
export function kernelVerdict(functionId: string): PolicyVerdict | null {
  if (kernelExempt.includes(functionId)) return null;
  const pattern = kernelDenies.find((candidate) => matchesGlob(candidate, functionId));
  if (pattern === undefined) return null;
  return {
    decision: "deny",
    rule_id: `kernel:${pattern}`,
    rule_action: "deny",
    reason: "agents may never call this function",
  };
}
