// The credential of a provider as header values, and taking it out of any text (I13).
import type { Credential } from "@flotilla/contracts";
import { ProviderFailure } from "./failure.ts";

/** The secret part, fit for a header. */
export function secretOf(credential: Credential): string {
  const secret = (credential.type === "api_key" ? credential.key : credential.access_token).trim();
  if (/^[\x21-\x7e]+$/.test(secret)) return secret;
  throw new ProviderFailure({
    kind: "auth_expired",
    message: "CREDENTIALS_MISSING: the stored credential is empty or has characters that no key has",
  });
}

export function missingCredential(provider: string, variable: string): ProviderFailure {
  return new ProviderFailure({
    kind: "auth_expired",
    message: `CREDENTIALS_MISSING: no credential for ${provider}; set ${variable}`,
  });
}

/** Error texts of vendors quote keys now and then. */
export function withoutSecret(text: string, credential: Credential | null): string {
  if (credential === null) return text;
  const secrets =
    credential.type === "api_key" ? [credential.key] : [credential.access_token, credential.refresh_token];
  return secrets.reduce<string>(
    (clean, secret) =>
      secret === undefined || secret.trim() === "" ? clean : clean.replaceAll(secret.trim(), "[redacted]"),
    text,
  );
}
