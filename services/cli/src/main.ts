// The `flotilla` command.
import { reportFailure } from "./failure.ts";
import { flotillaProgram } from "./program.ts";
import { processTerminal } from "./terminal.ts";

const terminal = processTerminal();
let exitCode = 0;
try {
  await flotillaProgram({ env: process.env, terminal, stdin: process.stdin }).parseAsync(process.argv);
} catch (error) {
  exitCode = reportFailure(error, { terminal, isJson: process.argv.includes("--json") });
}
// Workers of this process may leave a timer behind. What was written must reach a pipe first.
process.stdout.write("", () => process.exit(exitCode));
