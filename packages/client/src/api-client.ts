// Requests to the front door: JSON in, JSON out, problem documents as errors.
import { ApiError, UnreachableError } from "./errors.ts";

export interface ApiClientOptions {
  /** For example `http://127.0.0.1:7440`. */
  readonly url: string;
  readonly token?: string | undefined;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiClient {
  readonly url: string;
  get(path: string, options?: RequestOptions): Promise<unknown>;
  post(path: string, body: unknown, options?: RequestOptions): Promise<unknown>;
  /** The answer itself; throws for any status that is not 2xx. */
  open(path: string, init: RequestInit): Promise<Response>;
}

export function apiClient(options: ApiClientOptions): ApiClient {
  const url = options.url.replace(/\/+$/, "");
  const login: Record<string, string> = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };

  async function open(path: string, init: RequestInit): Promise<Response> {
    const response = await reach(url, path, { ...init, headers: { ...login, ...headersOf(init) } });
    if (!response.ok) throw new ApiError(response.status, problemIn(await response.text()));
    return response;
  }

  return {
    url,
    open,
    async get(path, { signal, headers } = {}) {
      return (await open(path, { ...(signal && { signal }), headers: { ...headers } })).json();
    },
    async post(path, body, { signal, headers } = {}) {
      const init = { method: "POST", body: JSON.stringify(body), ...(signal && { signal }) };
      return (await open(path, { ...init, headers: { "content-type": "application/json", ...headers } })).json();
    },
  };
}

async function reach(url: string, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(`${url}${path}`, init);
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new UnreachableError(url, error);
  }
}

function headersOf(init: RequestInit): Record<string, string> {
  return Object.fromEntries(new Headers(init.headers).entries());
}

/** Something between us and the front door may answer with a page instead. */
function problemIn(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? { ...parsed } : { detail: text };
  } catch {
    return { detail: text.slice(0, 500) };
  }
}
