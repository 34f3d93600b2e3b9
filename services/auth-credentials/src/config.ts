// What the credentials worker reads from its environment.
import { resolve } from "node:path";
import { type Env, loadConfig, Secret, secret } from "@flotilla/config";
import { z } from "zod";
import { environmentVariables } from "./domain/environment-table.ts";

/** Each variable `X` may be given as `X_FILE`: a file that is read on every use. */
const keys = Object.fromEntries(environmentVariables.map((name) => [name, secret().optional()]));

export const CredentialsConfig = z.object({
  /** JSON `{"<provider>": credential}`; when it is not set, `credentials.json` in FLOTILLA_HOME if there is one. */
  FLOTILLA_CREDENTIALS_FILE: z.string().min(1).optional(),
  FLOTILLA_HOME: z.string().min(1).default(".flotilla"),
  ...keys,
});

export interface CredentialSources {
  readonly path: string;
  readonly isRequired: boolean;
  readonly environment: ReadonlyMap<string, Secret>;
}

export function credentialSources(env: Env): CredentialSources {
  const config = loadConfig(CredentialsConfig, env);
  const values: Readonly<Record<string, unknown>> = config;
  const environment = new Map<string, Secret>();
  for (const name of environmentVariables) {
    const value = values[name];
    if (value instanceof Secret) environment.set(name, value);
  }
  const named = config.FLOTILLA_CREDENTIALS_FILE;
  return {
    path: resolve(named ?? `${config.FLOTILLA_HOME}/credentials.json`),
    isRequired: named !== undefined,
    environment,
  };
}
