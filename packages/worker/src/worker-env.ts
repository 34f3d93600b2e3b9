// The variables that every worker process shares, and the bus login of one worker.
import { readFileSync } from "node:fs";
import { type ConfigProblem, configInvalid, type Env, integer, loadConfig, port } from "@flotilla/config";
import { isFlotillaError } from "@flotilla/errors";
import { logLevels } from "@flotilla/telemetry";
import { z } from "zod";
import type { WorkerDefinition } from "./types.ts";

export const WorkerEnv = z.object({
  /** `nats://[user:password@]host:port`, or several, comma-separated. */
  NATS_URL: z.string().default("nats://127.0.0.1:4222"),
  /** JSON `{ "<worker>": {"user", "password"} }`; without it the login is the one in NATS_URL, or none. */
  NATS_CREDENTIALS_FILE: z.string().optional(),
  /** How long to wait for NATS at start. */
  NATS_CONNECT_TIMEOUT_MS: integer({ min: 1 }).default(90_000),
  LOG_LEVEL: z.enum(logLevels).default("warn"),
  /** Port of `/livez`, `/readyz` and `/metrics`; off when not set, any free one with 0. */
  ADMIN_PORT: port().optional(),
  ADMIN_HOST: z.string().default("127.0.0.1"),
  /** How long running calls may go on after SIGTERM; the default is the worker's own. */
  DRAIN_SECONDS: integer().optional(),
  /** Longest whole shutdown; by default the drain time and 10 s. */
  SHUTDOWN_GRACE_MS: integer({ min: 1 }).optional(),
  /** Number of this replica. */
  FLOTILLA_INSTANCE: integer({ max: 9_999 }).default(0),
  /** The number of turn-step shards that is expected; another stored number is refused. */
  TURN_SHARDS: integer({ min: 1, max: 1_024 }).optional(),
  /** JSON `{ "<namespace>": ["<worker>", …] }`, over the shipped grants. */
  FLOTILLA_GRANTS: z
    .string()
    .transform((text, context) => {
      const grants = z.record(z.string(), z.array(z.string())).safeParse(parseJson(text));
      if (grants.success) return grants.data;
      context.addIssue({ code: "custom", message: "must be JSON: lists of workers by namespace" });
      return z.NEVER;
    })
    .optional(),
});
export type WorkerEnv = z.output<typeof WorkerEnv>;

/** The shared variables; every problem of the definitions' own variables is reported with them. */
export function loadWorkerEnv(definitions: readonly WorkerDefinition[], env: Env): WorkerEnv {
  const problems: ConfigProblem[] = [];
  const collect = <T>(load: () => T): T | undefined => {
    try {
      return load();
    } catch (error) {
      problems.push(...problemsOf(error));
      return undefined;
    }
  };
  const shared = collect(() => loadConfig(WorkerEnv, env));
  for (const { config } of definitions) if (config !== undefined) collect(() => loadConfig(config, env));
  if (shared !== undefined) for (const { name } of definitions) collect(() => loginOf(name, shared));
  const unique = [...new Map(problems.map((entry) => [`${entry.variable}\n${entry.problem}`, entry])).values()];
  if (shared === undefined || unique.length > 0) throw configInvalid(unique);
  return shared;
}

const Logins = z.record(z.string(), z.object({ user: z.string(), password: z.string() }));

/** Read at each connect, so that rotated credentials count. */
export function loginOf(worker: string, env: WorkerEnv): { user?: string; password?: string } {
  const path = env.NATS_CREDENTIALS_FILE;
  if (path === undefined) return {};
  const refuse = (problem: string) => configInvalid([{ variable: "NATS_CREDENTIALS_FILE", problem }]);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    throw refuse(`the file cannot be read (${code})`);
  }
  const logins = Logins.safeParse(parseJson(text));
  if (!logins.success) throw refuse('must hold JSON {"<worker>": {"user", "password"}}');
  const login = logins.data[worker];
  if (login === undefined) throw refuse(`has no login for worker ${worker}`);
  return login;
}

function problemsOf(error: unknown): ConfigProblem[] {
  if (!isFlotillaError(error) || error.code !== "CONFIG_INVALID") throw error;
  return (
    (error.details?.problems as ConfigProblem[] | undefined) ?? [{ variable: "configuration", problem: error.message }]
  );
}

/** Undefined when it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
