// auth::get_token
import { authGetToken, type Credential } from "@flotilla/contracts";
import { FlotillaError, invalidInput } from "@flotilla/errors";
import { type Clock, type HandlerContext, implement } from "@flotilla/worker";
import type { CredentialUse, RecordUse } from "../adapters/audit.ts";
import { type Found, findCredential, type Sources } from "../domain/find-credential.ts";

export interface GetTokenDeps {
  readonly sources: () => Sources;
  readonly recordUse: RecordUse;
  readonly clock: Clock;
}

const providerWorker = /^provider-./;

export function makeGetToken(deps: GetTokenDeps) {
  return implement(authGetToken, async (context, { provider }): Promise<Credential | null> => {
    const record = (outcome: CredentialUse["outcome"], source?: string): Promise<void> =>
      deps.recordUse(useOf(deps, context, provider, outcome, source));
    // The bus user's permissions say the same; this one also holds where they are wide open (I13).
    if (!providerWorker.test(context.caller)) {
      await record("refused");
      throw new FlotillaError("FORBIDDEN", "only a provider worker may ask for a credential");
    }
    // With a key the answer would be kept as an outcome record, and the secret with it.
    if (context.idempotencyKey !== undefined)
      throw invalidInput("a credential is not given out under an idempotency key");
    const found = findCredential(provider, deps.sources());
    if (found === null) {
      await record("absent");
      return null;
    }
    const credential = reveal(found);
    await record("given", found.source);
    return credential;
  });
}

/** A secret in a file of its own is read at this moment, and the file may be gone. */
function reveal(found: Found): Credential {
  try {
    return found.reveal();
  } catch (cause) {
    throw new FlotillaError("CREDENTIALS_MISSING", `the credential in ${found.label} cannot be read`, { cause });
  }
}

function useOf(
  deps: GetTokenDeps,
  context: HandlerContext,
  provider: string,
  outcome: CredentialUse["outcome"],
  source: string | undefined,
): CredentialUse {
  return {
    at: deps.clock.now(),
    action: "auth::get_token",
    caller: context.caller,
    provider: provider.slice(0, 64),
    outcome,
    ...(source === undefined ? {} : { source }),
    ...(context.sessionId === undefined ? {} : { session_id: context.sessionId }),
    ...(context.turnId === undefined ? {} : { turn_id: context.turnId }),
  };
}
