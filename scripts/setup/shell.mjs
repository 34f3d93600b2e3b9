// Running commands during the set-up, and talking to the person who waits for it.
import { execFile, spawnSync } from "node:child_process";

/** A reason to stop that needs no stack trace. */
export class SetupError extends Error {}

export function say(text) {
  process.stderr.write(`setup: ${text}\n`);
}

/** Standard output of a command, or null when it is missing or fails. */
export function outputOf(command, args) {
  return new Promise((resolve) => {
    execFile(command, args, { timeout: 10_000 }, (error, stdout) => resolve(error === null ? stdout : null));
  });
}

/** Runs a command in view of the user; its standard output goes to stderr, which is the set-up's channel. */
export function succeeds(command, args, options = {}) {
  return spawnSync(command, args, { stdio: ["ignore", 2, 2], ...options }).status === 0;
}

export async function isDockerRunning() {
  return (await outputOf("docker", ["version", "--format", "{{.Server.Version}}"])) !== null;
}

/** `[2, 15, 1]` from the first version number in a text, or null. */
export function versionIn(text) {
  const match = /(\d+)\.(\d+)\.(\d+)/.exec(text ?? "");
  return match === null ? null : match.slice(1).map(Number);
}

export function isAtLeast(version, minimum) {
  if (version === null) return false;
  const difference = minimum.map((part, index) => version[index] - part).find((part) => part !== 0);
  return (difference ?? 0) >= 0;
}
