// `up` in the background: a second process runs the fleet; this one waits until it is ready.
import { spawn } from "node:child_process";
import { fstatSync, openSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Env } from "@flotilla/config";
import { FleetError } from "@flotilla/fleet";
import type { Terminal } from "../terminal.ts";
import { bannerOf, type Started } from "./banner.ts";

const mainFile = fileURLToPath(new URL("../main.ts", import.meta.url));
const shownLines = 20;

export interface DetachedOptions {
  readonly args: readonly string[];
  readonly env: Env;
  readonly logFile: string;
  readonly terminal: Terminal;
  readonly isJson: boolean;
}

export async function runDetached(options: DetachedOptions): Promise<void> {
  // Appended to: a fleet that runs in this home already writes there.
  const log = openSync(options.logFile, "a", 0o600);
  const logStart = fstatSync(log).size;
  const child = spawn(process.execPath, [mainFile, ...options.args], {
    detached: true,
    env: { ...options.env } as NodeJS.ProcessEnv,
    stdio: ["ignore", log, log, "ipc"],
  });
  const outcome = await new Promise<Started | number>((resolve) => {
    child.once("message", (message) => resolve(message as Started));
    child.once("exit", (code) => resolve(code ?? 1));
  });
  if (typeof outcome === "number") throw ended(outcome, options.logFile, logStart);
  child.disconnect();
  child.unref();
  const { terminal, isJson } = options;
  terminal.print(
    isJson ? JSON.stringify(outcome) : `${bannerOf(outcome)}  stop      make down, or: npx flotilla down\n`,
  );
}

function ended(code: number, logFile: string, logStart: number): FleetError {
  const lines = readFileSync(logFile).subarray(logStart).toString("utf8").trimEnd().split("\n").slice(-shownLines);
  return new FleetError(`the fleet did not start (log: ${logFile}):\n${lines.join("\n")}`, { exitCode: code || 1 });
}
