// The credentials file: read again whenever it changes.
//
// F1 A file that does not parse changes nothing: the last good one stays. Without one, nothing is given out.
// F2 A file that is gone gives nothing any more.
import { readFileSync, statSync } from "node:fs";
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import { parseStore, type Stored } from "../domain/parse-store.ts";

export interface CredentialsFile {
  /** Throws CONFIG_INVALID when there is a file and it was never good. */
  read(): Stored;
  /** What is wrong with the file now, or null. */
  problem(): string | null;
}

export interface CredentialsFileOptions {
  readonly path: string;
  /** The operator named it: then it must be there. */
  readonly isRequired: boolean;
  readonly logger: Logger;
}

const empty: Stored = new Map();

export function createCredentialsFile({ path, isRequired, logger }: CredentialsFileOptions): CredentialsFile {
  let version = "";
  let stored: Stored | null = null;
  let problem: string | null = null;

  const fail = (text: string): void => {
    problem = `the credentials file ${text}${stored === null ? "" : "; the last good one is in force"}`;
    logger.error("the credentials file cannot be used", { path, problem });
  };

  const take = (found: Extract<Found, { kind: "file" }>): void => {
    if (found.isOpen) logger.warn("the credentials file can be read by other users; chmod 600 it", { path });
    const parsed = parseStore(found.text);
    if (parsed.ok) stored = parsed.stored;
    else fail(parsed.problem);
  };

  const refresh = (): void => {
    const found = inspect(path);
    if (found.version === version) return;
    version = found.version;
    problem = null;
    if (found.kind === "file") take(found);
    else if (found.kind === "unreadable") fail(`cannot be read (${found.code})`);
    else if (isRequired) {
      stored = null;
      fail("is not there");
    } else stored = empty;
  };

  return {
    read() {
      refresh();
      if (stored === null) throw new FlotillaError("CONFIG_INVALID", problem ?? "the credentials file cannot be used");
      return stored;
    },
    problem() {
      refresh();
      return problem;
    },
  };
}

type Found =
  | { readonly kind: "file"; readonly version: string; readonly text: string; readonly isOpen: boolean }
  | { readonly kind: "absent"; readonly version: string }
  | { readonly kind: "unreadable"; readonly version: string; readonly code: string };

function inspect(path: string): Found {
  try {
    const { mtimeMs, ctimeMs, size, ino, mode } = statSync(path);
    const text = readFileSync(path, "utf8");
    return { kind: "file", version: `${ino}:${mtimeMs}:${ctimeMs}:${size}`, text, isOpen: (mode & 0o077) !== 0 };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    if (code === "ENOENT") return { kind: "absent", version: "absent" };
    return { kind: "unreadable", version: code, code };
  }
}
