// The main of every worker process: configuration, telemetry, signals and exit codes.
//
// Exit codes: 0 stopped as asked; 1 failed, or the shutdown grace was exceeded; 78 the configuration is not valid.
import { type FlotillaError, isFlotillaError } from "@flotilla/errors";
import { createLogger, isLogLevel, type Logger, startTelemetry, type Telemetry } from "@flotilla/telemetry";
import manifest from "../package.json" with { type: "json" };
import { nameOf, runWorkers, type WorkersHandle } from "./run-workers.ts";
import type { WorkerDefinition } from "./types.ts";

export interface RunMainOptions {
  /** @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const configExitCode = 78;

/** Runs until a signal or a fatal error, then exits the process. */
export async function runMain(
  definitions: WorkerDefinition | readonly WorkerDefinition[],
  options: RunMainOptions = {},
): Promise<void> {
  const list: readonly WorkerDefinition[] = "build" in definitions ? [definitions] : definitions;
  const env = options.env ?? process.env;
  const name = nameOf(list);
  // Before the configuration is known to be valid; an invalid level is reported with the other problems.
  const level = isLogLevel(env.LOG_LEVEL) ? env.LOG_LEVEL : "warn";
  const logger = createLogger({ level, name });
  const main = new Main(logger);
  main.listen();
  try {
    await main.run(list, env, name);
  } catch (error) {
    await main.fail(error);
  }
}

class Main {
  readonly #logger: Logger;
  #telemetry: Telemetry | undefined;
  #handle: WorkersHandle | undefined;
  #isStopping = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  async run(list: readonly WorkerDefinition[], env: Readonly<Record<string, string | undefined>>, name: string) {
    const logger = this.#logger;
    // First, so that the trace of the first call is whole.
    this.#telemetry = await startTelemetry({ serviceName: name, version: manifest.version, env, logger });
    if (this.#isStopping) return;
    const handle = runWorkers({ definitions: list, env, logger, onFatal: (error) => void this.fail(error) });
    this.#handle = handle;
    await handle.ready();
  }

  listen(): void {
    const onSignal = (signal: NodeJS.Signals): void => {
      if (this.#isStopping) {
        this.#logger.warn("a second signal came; exiting at once", { signal });
        process.exit(1);
      }
      void this.stop(signal);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
    const onDefect = (error: unknown): void => {
      this.#logger.error("an error was handled nowhere", { error });
      process.exit(1);
    };
    process.on("unhandledRejection", onDefect);
    process.on("uncaughtException", onDefect);
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    this.#isStopping = true;
    this.#logger.info("stopping", { signal });
    try {
      await this.#handle?.stop();
      await this.#telemetry?.shutdown();
      process.exit(0);
    } catch (error) {
      this.#logger.error("the shutdown was not clean", { error });
      process.exit(1);
    }
  }

  async fail(error: unknown): Promise<void> {
    // A worker that is stopped while it starts fails to start; the signal handler ends the process.
    if (this.#isStopping) return;
    this.#isStopping = true;
    if (isConfigInvalid(error)) {
      process.stderr.write(`The configuration is not valid:\n${indent(error.message)}\n`);
      process.exit(configExitCode);
    }
    this.#logger.error("the process cannot go on", { error });
    process.stderr.write(`${isFlotillaError(error) ? error.message : "The process failed; see the log above."}\n`);
    await this.#telemetry?.shutdown();
    process.exit(1);
  }
}

function isConfigInvalid(error: unknown): error is FlotillaError {
  return isFlotillaError(error) && error.code === "CONFIG_INVALID";
}

function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
}
