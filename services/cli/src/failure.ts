// A failure as the person at the terminal should see it, and the exit code for it.
import { ApiError, UnreachableError } from "@flotilla/client";
import { FleetError } from "@flotilla/fleet";
import type { Terminal } from "./terminal.ts";

/** A mistake in what was typed, or an answer of the fleet that means failure. */
export class CliError extends Error {
  readonly code: string;

  constructor(message: string, code = "CLI_FAILED") {
    super(message);
    this.name = "CliError";
    this.code = code;
  }
}

const configExitCode = 78;

export function reportFailure(error: unknown, output: { terminal: Terminal; isJson: boolean }): number {
  const { message, code, field, exitCode } = describe(error);
  const { terminal, isJson } = output;
  if (isJson) terminal.print(JSON.stringify({ error: { code, message, ...(field === undefined ? {} : { field }) } }));
  else terminal.note(`flotilla: ${message}${field === undefined ? "" : ` (field ${field})`}`);
  if (code === "INTERNAL" && error instanceof Error) terminal.note(error.stack ?? "");
  return exitCode;
}

interface Failure {
  readonly message: string;
  readonly code: string;
  readonly field?: string | undefined;
  readonly exitCode: number;
}

function describe(error: unknown): Failure {
  if (error instanceof UnreachableError) {
    const message = `nothing answers at ${error.url}. Start a fleet with: make up (or flotilla up); for another one use --url or FLOTILLA_URL`;
    return { message, code: "UNREACHABLE", exitCode: 1 };
  }
  if (error instanceof ApiError) {
    const hint = error.status === 401 ? "; give a token with --token or FLOTILLA_TOKEN" : "";
    return { message: `${error.message} [${error.code}]${hint}`, code: error.code, field: error.field, exitCode: 1 };
  }
  if (error instanceof FleetError) return { message: error.message, code: "FLEET_FAILED", exitCode: error.exitCode };
  if (error instanceof CliError) return { message: error.message, code: error.code, exitCode: 1 };
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "INTERNAL";
  return { message, code, exitCode: code === "CONFIG_INVALID" ? configExitCode : 1 };
}
