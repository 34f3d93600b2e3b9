// The `flotilla` command.
import { reportFailure } from "./failure.ts";
import { flotillaProgram } from "./program.ts";
import { processTerminal } from "./terminal.ts";

const terminal = processTerminal();
try {
  await flotillaProgram({ env: process.env, terminal, stdin: process.stdin }).parseAsync(process.argv);
} catch (error) {
  // Not exit: what was written must reach a pipe first.
  process.exitCode = reportFailure(error, { terminal, isJson: process.argv.includes("--json") });
}
