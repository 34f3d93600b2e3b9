// Runs the CLI for tests: in this process with a recorded terminal, or as the real command.
import { type ChildProcess, spawn } from "node:child_process";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { reportFailure } from "../src/failure.ts";
import { flotillaProgram } from "../src/program.ts";
import type { Terminal } from "../src/terminal.ts";

export interface Recorded {
  readonly out: string;
  readonly err: string;
  readonly exitCode: number;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: Readable;
}

/** In this process. */
export async function runFlotilla(args: readonly string[], options: RunOptions = {}): Promise<Recorded> {
  const out: string[] = [];
  const err: string[] = [];
  const terminal: Terminal = {
    print: (text) => void out.push(`${text}\n`),
    write: (text) => void out.push(text),
    note: (text) => void err.push(`${text}\n`),
    isTty: false,
  };
  let exitCode = 0;
  try {
    const program = flotillaProgram({ env: options.env ?? {}, terminal, stdin: options.stdin ?? Readable.from([]) });
    await program.parseAsync(["node", "flotilla", ...args]);
  } catch (error) {
    exitCode = reportFailure(error, { terminal, isJson: args.includes("--json") });
  }
  return { out: out.join(""), err: err.join(""), exitCode };
}

const command = fileURLToPath(new URL("../bin/flotilla", import.meta.url));

export interface RunningFlotilla {
  readonly child: ChildProcess;
  /** Everything it has written so far. */
  output(): string;
  readonly exited: Promise<number>;
}

/** The command as a user starts it. */
export function startFlotilla(args: readonly string[], env: Readonly<Record<string, string>>): RunningFlotilla {
  const base = { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "" };
  const child = spawn(command, args, { env: { ...base, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  const pieces: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => pieces.push(data.toString()));
  const exited = new Promise<number>((resolve) => child.once("close", (code) => resolve(code ?? 1)));
  return { child, output: () => pieces.join(""), exited };
}
