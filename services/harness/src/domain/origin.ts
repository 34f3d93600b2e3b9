// Which requests a browser may have been tricked into: cross-origin writes, and names rebound to loopback. Pure.
import { FlotillaError } from "@flotilla/errors";

const loopbackNames = new Set(["localhost", "::1", "0:0:0:0:0:0:0:1"]);

export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  return loopbackNames.has(name) || /^127(\.\d{1,3}){3}$/.test(name);
}

export interface RequestOrigin {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
}

export interface OriginRules {
  /** Without tokens the name in `Host` is all that keeps a rebound name out. */
  readonly isOpen: boolean;
  readonly allowedHosts: readonly string[];
}

/** Throws FORBIDDEN for a request that another site's page may have sent. */
export function checkOrigin(request: RequestOrigin, rules: OriginRules): void {
  const name = hostName(request.host);
  if (rules.isOpen && !isLoopback(name) && !rules.allowedHosts.includes(name)) {
    throw forbidden("this host name is not served; FLOTILLA_ALLOWED_HOSTS lists those that are");
  }
  if (request.method === "GET" || request.method === "HEAD") return;
  if (request.fetchSite === "cross-site" || request.fetchSite === "same-site") {
    throw forbidden("a page of another site may not write here");
  }
  if (request.origin === undefined) return;
  if (originHost(request.origin) !== request.host?.toLowerCase()) {
    throw forbidden("a page of another origin may not write here");
  }
}

function forbidden(message: string): FlotillaError {
  return new FlotillaError("FORBIDDEN", message, { field: "origin" });
}

function hostName(host: string | undefined): string {
  if (host === undefined) return "";
  // A trailing :port, which an IPv6 address in brackets may have too.
  return host
    .toLowerCase()
    .replace(/:\d+$/, "")
    .replace(/^\[|\]$/g, "");
}

/** Host and port of an `Origin`; "" for `null` and what is no URL. */
function originHost(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : "";
}
