// The error classes, named for what the caller should do, and the total conversion of anything thrown.
import { type CodeRow, codes, type Disposition, type ErrorCode, isErrorCode } from "./codes.ts";

const marker = Symbol.for("flotilla.error");

export interface ErrorOptions {
  /** The one request field to blame, as a dotted path. */
  readonly field?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
  /** More JSON for the caller; must be safe to show. */
  readonly details?: Record<string, unknown> | undefined;
}

/** What crosses the wire: `{code, message, field?, retry_after_ms?, details?}`. */
export interface ErrorBody {
  code: string;
  message: string;
  field?: string;
  retry_after_ms?: number;
  details?: Record<string, unknown>;
}

export class FlotillaError extends Error {
  readonly [marker] = true;
  /** One of our codes, or the code a foreign worker sent. */
  readonly code: string;
  readonly field: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly details: Record<string, unknown> | undefined;

  constructor(code: ErrorCode | (string & {}), message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "FlotillaError";
    this.code = code;
    this.field = options.field;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details;
  }

  get row(): CodeRow {
    return isErrorCode(this.code) ? codes[this.code] : { disposition: "terminal", httpStatus: 500, title: this.code };
  }

  get disposition(): Disposition {
    return this.row.disposition;
  }

  get httpStatus(): number {
    return this.row.httpStatus;
  }

  /** The wire form. A defect keeps its message to itself (only its code and a fixed sentence go out). */
  toBody(): ErrorBody {
    if (this.disposition === "defect") return { code: this.code, message: this.row.title };
    return {
      code: this.code,
      message: this.message,
      ...(this.field === undefined ? {} : { field: this.field }),
      ...(this.retryAfterMs === undefined ? {} : { retry_after_ms: this.retryAfterMs }),
      ...(this.details === undefined ? {} : { details: this.details }),
    };
  }
}

/** Identity by marker, because two copies of this package may be loaded. */
export function isFlotillaError(value: unknown): value is FlotillaError {
  return typeof value === "object" && value !== null && marker in value;
}

/** The only catch-all: whatever was thrown becomes a FlotillaError; the unknown is a defect with code INTERNAL. */
export function ensureFlotillaError(value: unknown): FlotillaError {
  if (isFlotillaError(value)) return value;
  const message = value instanceof Error ? value.message : String(value);
  return new FlotillaError("INTERNAL", message, { cause: value });
}

export function errorFromBody(body: ErrorBody): FlotillaError {
  return new FlotillaError(body.code, body.message, {
    field: body.field,
    retryAfterMs: body.retry_after_ms,
    details: body.details,
  });
}

export function invalidInput(message: string, field?: string): FlotillaError {
  return new FlotillaError("INVALID_INPUT", message, { field });
}
