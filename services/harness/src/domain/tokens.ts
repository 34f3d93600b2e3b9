// Static bearer tokens: who a caller is, what each role may do, and whose sessions it sees (wire.md 7).
import { createHash, timingSafeEqual } from "node:crypto";
import { idPattern } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";

export const roles = ["client", "approver", "operator"] as const;
/** Each role may do what the ones before it may. */
export type Role = (typeof roles)[number];

export interface Identity {
  readonly role: Role;
  /** The one workspace it sees; null = all. */
  readonly workspace: string | null;
}

/** Who everybody is at an open door. */
export const anyone: Identity = { role: "operator", workspace: null };

export interface TokenRow extends Identity {
  readonly digest: Buffer;
}

/** Lines `token workspace role`; `*` is every workspace; blank lines and `#` comments are skipped. */
export function parseTokens(text: string): TokenRow[] {
  const rows: TokenRow[] = [];
  for (const [index, raw] of text.split("\n").entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const [token, workspace, role, ...rest] = line.split(/\s+/);
    if (token === undefined || workspace === undefined || rest.length > 0 || !isRole(role)) {
      throw bad(index, "is not `token workspace role` with role client, approver or operator");
    }
    if (workspace !== "*" && !idPattern.test(workspace)) throw bad(index, "has a workspace that is not an id");
    rows.push({ digest: digestOf(token), role, workspace: workspace === "*" ? null : workspace });
  }
  return rows;
}

/** The identity behind an `Authorization` header. Looks at every token in constant time. */
export function authenticate(header: string | undefined, rows: readonly TokenRow[]): Identity {
  const token = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (token === undefined) throw new FlotillaError("UNAUTHENTICATED", "send a token as Authorization: Bearer");
  const digest = digestOf(token);
  let found: TokenRow | undefined;
  for (const row of rows) if (timingSafeEqual(row.digest, digest)) found = row;
  if (found === undefined) throw new FlotillaError("UNAUTHENTICATED", "this token is not known");
  return { role: found.role, workspace: found.workspace };
}

export function requireRole(identity: Identity, needed: Role): void {
  if (roles.indexOf(identity.role) < roles.indexOf(needed)) {
    throw new FlotillaError("FORBIDDEN", `this needs a token with role ${needed}`);
  }
}

/** The workspace of a write: the token's own; naming another one is refused. */
export function workspaceFor(identity: Identity, asked: string | undefined): string | undefined {
  if (identity.workspace === null) return asked;
  if (asked !== undefined && asked !== identity.workspace) {
    throw new FlotillaError("FORBIDDEN", "this token belongs to another workspace", { field: "workspace" });
  }
  return identity.workspace;
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function isRole(value: string | undefined): value is Role {
  return value !== undefined && (roles as readonly string[]).includes(value);
}

/** Names the line, never what stands in it. */
function bad(index: number, what: string): FlotillaError {
  return new FlotillaError("CONFIG_INVALID", `FLOTILLA_TOKENS_FILE: line ${index + 1} ${what}`);
}
