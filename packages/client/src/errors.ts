// What can go wrong between a client and the front door.

/** The front door answered with a problem document (RFC 9457). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;

  constructor(status: number, problem: { code?: unknown; detail?: unknown; title?: unknown; field?: unknown }) {
    super(textOr(problem.detail, textOr(problem.title, `HTTP status ${status}`)));
    this.name = "ApiError";
    this.status = status;
    this.code = textOr(problem.code, `HTTP_${status}`);
    this.field = typeof problem.field === "string" ? problem.field : undefined;
  }
}

/** Nobody answers at the URL. */
export class UnreachableError extends Error {
  readonly url: string;

  constructor(url: string, cause: unknown) {
    super(`nothing answers at ${url}`, { cause });
    this.name = "UnreachableError";
    this.url = url;
  }
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === "string" && value !== "" ? value : fallback;
}
