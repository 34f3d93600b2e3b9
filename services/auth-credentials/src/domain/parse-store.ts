// The text of a credentials file to credentials by provider; what is wrong with it is said without a word of it. Pure.
import { Secret } from "@flotilla/config";
import { Credential } from "@flotilla/contracts";
import { z } from "zod";

/** The credential of each provider as JSON, so that it cannot be printed by accident. */
export type Stored = ReadonlyMap<string, Secret>;

export type ParsedStore =
  | { readonly ok: true; readonly stored: Stored }
  | { readonly ok: false; readonly problem: string };

const bareKey = z
  .string()
  .min(1)
  .transform((key): Credential => ({ type: "api_key", key }));
const Entry = z.union([bareKey, Credential]);

export function parseStore(text: string): ParsedStore {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // The parser's own message quotes the text.
    return { ok: false, problem: "is no JSON" };
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return { ok: false, problem: "must be an object of credentials by provider" };
  }
  const stored = new Map<string, Secret>();
  for (const [provider, value] of Object.entries(json)) {
    const entry = Entry.safeParse(value);
    if (!entry.success) {
      const forms = '"<key>", {"type": "api_key", "key"} or {"type": "oauth", "access_token", …}';
      return { ok: false, problem: `the entry of ${provider.slice(0, 64)} must be ${forms}` };
    }
    stored.set(provider, Secret.of(JSON.stringify(entry.data)));
  }
  return { ok: true, stored };
}

export function credentialOf(secret: Secret): Credential {
  return JSON.parse(secret.reveal()) as Credential;
}
