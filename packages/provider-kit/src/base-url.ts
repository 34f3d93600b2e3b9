// A base URL as people write it, with or without a version and the endpoint's own path, to the endpoint.

const version = /\/v\d+[a-z0-9]*(?:\/|$)/;

/** `path` begins with a slash; `/v1` is put between when the base names no version. */
export function endpointOf(baseUrl: string, path: string): string {
  const url = new URL(baseUrl);
  const trimmed = url.pathname.replace(/\/+$/, "");
  const base = trimmed.endsWith(path) ? trimmed.slice(0, -path.length) : trimmed;
  url.pathname = `${version.test(`${base}/`) ? base : `${base}/v1`}${path}`;
  return url.toString();
}
