// Where a provider's credential comes from: the file, then the environment, then a known stand-in. Pure.
import type { Secret } from "@flotilla/config";
import type { Credential } from "@flotilla/contracts";
import { environmentTable, fallbackKeys } from "./environment-table.ts";
import { credentialOf, type Stored } from "./parse-store.ts";

export interface Sources {
  readonly stored: Stored;
  /** Secrets by variable name. */
  readonly environment: ReadonlyMap<string, Secret>;
}

export interface Found {
  readonly source: "stored" | "environment" | "fallback";
  /** Where to look for it; never the secret. */
  readonly label: string;
  /** The secret itself; read at this moment. */
  reveal(): Credential;
}

export function findCredential(provider: string, { stored, environment }: Sources): Found | null {
  const entry = stored.get(provider);
  if (entry !== undefined) {
    return { source: "stored", label: "credentials file", reveal: () => credentialOf(entry) };
  }
  const variable = Object.hasOwn(environmentTable, provider) ? environmentTable[provider] : undefined;
  const secret = variable === undefined ? undefined : environment.get(variable);
  if (variable !== undefined && secret !== undefined) {
    return { source: "environment", label: variable, reveal: () => ({ type: "api_key", key: secret.reveal() }) };
  }
  const key = Object.hasOwn(fallbackKeys, provider) ? fallbackKeys[provider] : undefined;
  if (key === undefined) return null;
  return { source: "fallback", label: "any key will do", reveal: () => ({ type: "api_key", key }) };
}

/** Providers with a credential that somebody configured, sorted. */
export function configuredProviders({ stored, environment }: Sources): string[] {
  const fromEnvironment = Object.entries(environmentTable)
    .filter(([, variable]) => environment.has(variable))
    .map(([provider]) => provider);
  return [...new Set([...stored.keys(), ...fromEnvironment])].sort();
}
