// Workers in this very process; they still meet only on the bus.
import type { Env } from "@flotilla/config";
import { createLogger, isLogLevel, startTelemetry } from "@flotilla/telemetry";
import { runWorkers } from "@flotilla/worker";
import { loadDefinitions } from "./worker-folders.ts";

export interface Composite {
  /** Why it cannot go on, once that is so. */
  failure(): Error | null;
  /** Contract: resolves with the reason when it cannot go on; never while all is well. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

export interface CompositeOptions {
  readonly workers: readonly string[];
  readonly env: Env;
  readonly version: string;
}

export async function startComposite(options: CompositeOptions): Promise<Composite> {
  const { env } = options;
  const definitions = await loadDefinitions(options.workers);
  const logger = createLogger({ level: isLogLevel(env.LOG_LEVEL) ? env.LOG_LEVEL : "warn", name: "flotilla" });
  const telemetry = await startTelemetry({ serviceName: "flotilla", version: options.version, env, logger });
  const { promise: failed, resolve } = Promise.withResolvers<Error>();
  let failure: Error | null = null;
  const onFatal = (reason: unknown): void => {
    failure ??= reason instanceof Error ? reason : new Error(String(reason));
    resolve(failure);
  };
  const handle = runWorkers({ definitions, env, logger, onFatal });
  handle.ready().catch(onFatal);
  return {
    failure: () => failure,
    failed,
    async stop() {
      await handle.stop();
      await telemetry.shutdown();
    },
  };
}
