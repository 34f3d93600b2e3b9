// The npm packages: installed when they are not exactly what the lockfile says.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError, say, succeeds } from "./shell.mjs";

export function ensureDependencies(root) {
  const reason = staleness(root);
  if (reason === null) return;
  say(`${reason}; running npm ci (a minute on a new machine)`);
  if (!succeeds("npm", ["ci", "--loglevel=error"], { cwd: root })) throw new SetupError("npm ci failed, see above");
}

/** Why the installed packages are not those of the lockfile; null when they are. */
export function staleness(root) {
  const installedPath = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installedPath)) return "packages are not installed";
  const locked = packagesOf(join(root, "package-lock.json"));
  const installed = packagesOf(installedPath);
  const changed = Object.keys(locked).find((path) => isMissingOrDifferent(path, locked[path], installed[path]));
  if (changed !== undefined) return `${changed} is not what package-lock.json says`;
  if (!existsSync(join(root, "node_modules", ".bin", "node"))) return "the workspace's own Node is not installed";
  return null;
}

function packagesOf(path) {
  return JSON.parse(readFileSync(path, "utf8")).packages;
}

/** The lockfile also lists the workspace's own folders, and optional packages for other platforms. */
function isMissingOrDifferent(path, locked, installed) {
  if (!path.startsWith("node_modules/") && !path.includes("/node_modules/")) return false;
  if (installed === undefined) return !locked.optional && !locked.devOptional && !locked.peer;
  return installed.version !== locked.version;
}
