// The environment of a local fleet's workers: the caller's, with what the fleet decides on top.
import type { Env } from "@flotilla/config";
import { defaultModel } from "./default-model.ts";

export interface WorkerEnvOptions {
  readonly env: Env;
  readonly home: string;
  readonly port: number;
  readonly workers: readonly string[];
  /** Addresses and logins. */
  readonly backends: Env;
}

/** Ctrl-C on a laptop does not wait five minutes for a tool; in a cluster the workers' own drain times count. */
const drainSeconds = "3";

export function workerEnv(options: WorkerEnvOptions): Env {
  const { provider, model } = defaultModel(options.env);
  return {
    DRAIN_SECONDS: drainSeconds,
    FLOTILLA_READY_WORKERS: options.workers.filter((worker) => worker !== "harness").join(","),
    ...options.env,
    ...options.backends,
    FLOTILLA_HOME: options.home,
    FLOTILLA_PORT: String(options.port),
    FLOTILLA_DEFAULT_PROVIDER: provider,
    FLOTILLA_DEFAULT_MODEL: model,
  };
}

const credential = /(_API_KEY|^HF_TOKEN|^AWS_[A-Z_]+|^GOOGLE_APPLICATION_CREDENTIALS)(_FILE)?$/;

/** What one worker's process gets: keys of providers go to the worker that hands them out, and to no other (I13). */
export function envOfWorker(worker: string, env: Env): Env {
  if (worker === "auth-credentials") return env;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !credential.test(name)));
}
