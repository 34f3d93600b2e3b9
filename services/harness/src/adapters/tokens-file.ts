// The tokens file, read again when it changes; a change that does not parse keeps the last good one.
import { readFileSync, statSync } from "node:fs";
import { ensureFlotillaError, FlotillaError, isFlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import { anyone, authenticate, type Identity, parseTokens, type TokenRow } from "../domain/tokens.ts";

export interface Authenticator {
  readonly isOpen: boolean;
  /** Contract: throws UNAUTHENTICATED for a missing or unknown token. */
  identify(authorization: string | undefined): Identity;
}

/** How long a file's stamp is believed; a new token counts within this time. */
const checkEveryMs = 500;

export function createAuthenticator(path: string | undefined, logger: Logger, now = Date.now): Authenticator {
  if (path === undefined) return { isOpen: true, identify: () => anyone };
  let { rows, stamp } = readTokens(path);
  let checkedAt = now();
  const refresh = (): void => {
    if (now() - checkedAt < checkEveryMs) return;
    checkedAt = now();
    try {
      const newer = stampOf(path);
      if (newer === stamp) return;
      rows = parseTokens(readFileSync(path, "utf8"));
      stamp = newer;
      logger.info("the tokens file was read again", { tokens: rows.length });
    } catch (error) {
      logger.error("the tokens file cannot be used; the last good one counts", {
        reason: ensureFlotillaError(error).message,
      });
    }
  };
  return {
    isOpen: false,
    identify(authorization) {
      refresh();
      return authenticate(authorization, rows);
    },
  };
}

/** Throws CONFIG_INVALID for a file that cannot be read or does not parse. */
export function readTokens(path: string): { rows: readonly TokenRow[]; stamp: string } {
  try {
    const stamp = stampOf(path);
    return { rows: parseTokens(readFileSync(path, "utf8")), stamp };
  } catch (cause) {
    if (isFlotillaError(cause)) throw cause;
    throw new FlotillaError("CONFIG_INVALID", "FLOTILLA_TOKENS_FILE: the file cannot be read", { cause });
  }
}

/** A mounted secret is swapped by renaming a link: the inode tells where the time does not. */
function stampOf(path: string): string {
  const { mtimeMs, size, ino } = statSync(path);
  return `${mtimeMs}/${size}/${ino}`;
}
