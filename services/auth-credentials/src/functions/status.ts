// auth::status and auth::list_providers
import { authListProviders, authStatus } from "@flotilla/contracts";
import { type Implementation, implement } from "@flotilla/worker";
import { configuredProviders, findCredential, type Sources } from "../domain/find-credential.ts";

export function makeStatusFunctions(sources: () => Sources): Implementation[] {
  return [
    implement(authStatus, (_context, { provider }) => {
      const found = findCredential(provider, sources());
      if (found === null) return { configured: false };
      return { configured: true, source: found.source, label: found.label };
    }),
    implement(authListProviders, () => ({ providers: configuredProviders(sources()) })),
  ];
}
