// A mistake in the configuration ends the process with its reason and the exit code of all workers for that.
import { isFlotillaError } from "@flotilla/errors";

const configExitCode = 78;

export function orExit<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!isFlotillaError(error) || error.code !== "CONFIG_INVALID") throw error;
    process.stderr.write(`The configuration is not valid:\n  ${error.message}\n`);
    process.exit(configExitCode);
  }
}
