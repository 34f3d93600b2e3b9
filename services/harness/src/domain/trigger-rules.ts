// Which functions a client may call through /v1/trigger (wire.md 2). Pure.
import { FlotillaError } from "@flotilla/errors";

const allowedNamespaces = new Set(["run", "approval", "models", "demo"]);
const allowedIds = new Set(["turn::get_state", "provider::scripted::calls"]);
/** Refused whether or not a worker offers them: a client learns nothing about what runs. */
const internalNamespaces = new Set([
  "policy",
  "auth",
  "agent",
  "budget",
  "context-compaction",
  "directory",
  "harness",
  "hook-fanout",
  "provider",
  "sandbox",
  "turn",
  "ui",
]);

/** Throws FORBIDDEN for what a client may not call, FUNCTION_NOT_FOUND for what nobody offers. */
export function checkTriggerable(functionId: string, isOffered: boolean): void {
  const namespace = functionId.split("::")[0] ?? "";
  const isAllowed =
    allowedIds.has(functionId) || allowedNamespaces.has(namespace) || /^session-[a-z0-9_-]+$/.test(namespace);
  if (isAllowed && isOffered) return;
  if (!isAllowed && (isOffered || internalNamespaces.has(namespace))) {
    throw new FlotillaError("FORBIDDEN", `a client may not call ${functionId}`, { field: "function_id" });
  }
  throw new FlotillaError("FUNCTION_NOT_FOUND", `no worker offers ${functionId}`, { field: "function_id" });
}
