// A reason why a local fleet cannot run, for the person at the terminal.
export class FleetError extends Error {
  /** Exit code of the command that meets it. */
  readonly exitCode: number;

  constructor(message: string, options: { exitCode?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "FleetError";
    this.exitCode = options.exitCode ?? 1;
  }
}
