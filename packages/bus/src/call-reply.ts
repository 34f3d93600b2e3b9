// What comes back from a call: a value, or one typed error whatever went wrong.
import { headerNames } from "@flotilla/contracts";
import { type ErrorBody, errorFromBody, FlotillaError } from "@flotilla/errors";
import { type Msg, errors as natsErrors } from "@nats-io/transport-node";
import type { ClaimCheck } from "./claim-check.ts";
import { isPermission } from "./journal-errors.ts";

const decoder = new TextDecoder();

export async function valueOfReply(claimCheck: ClaimCheck, functionId: string, reply: Msg): Promise<unknown> {
  const code = reply.headers?.get(headerNames.errorCode) ?? "";
  const body = parseJson(await claimCheck.decode(reply.data, reply.headers));
  if (code !== "") {
    throw errorFromBody(errorBodyOf(code, reply.headers?.get(headerNames.errorMessage) ?? "", body));
  }
  if (body === undefined) throw new FlotillaError("INTERNAL", `the answer of ${functionId} is not JSON`);
  return body;
}

/** The code is the header's; of the body, which another language may have written, only what has the right type is taken. */
function errorBodyOf(code: string, header: string, body: unknown): ErrorBody {
  const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const { message, field, retry_after_ms: retryAfterMs, details } = fields;
  return {
    code,
    message: typeof message === "string" && message !== "" ? message : header || code,
    ...(typeof field === "string" ? { field } : {}),
    ...(typeof retryAfterMs === "number" ? { retry_after_ms: retryAfterMs } : {}),
    ...(typeof details === "object" && details !== null ? { details: details as Record<string, unknown> } : {}),
  };
}

/** Undefined when it is not JSON; an empty reply is null. */
function parseJson(data: Uint8Array): unknown {
  if (data.length === 0) return null;
  try {
    return JSON.parse(decoder.decode(data)) as unknown;
  } catch {
    return undefined;
  }
}

export function isNoResponders(error: unknown): boolean {
  return (
    error instanceof natsErrors.NoRespondersError ||
    (error instanceof natsErrors.RequestError && error.isNoResponders())
  );
}

/** `wasLost`: the connection was away while the request was under way, so that nobody knows whether it arrived. */
export function typedError(error: unknown, functionId: string, wasLost: boolean): FlotillaError {
  if (error instanceof FlotillaError) return error;
  if (isPermission(error)) {
    return new FlotillaError("BUS_PERMISSION", `this bus user may not call ${functionId}`, { cause: error });
  }
  const isTimeout =
    error instanceof natsErrors.TimeoutError || (error as Error).cause instanceof natsErrors.TimeoutError;
  if (isTimeout && !wasLost) return timedOut(functionId);
  const message = `the bus was not reachable while ${functionId} was called; it may or may not have run`;
  return new FlotillaError("BUS_UNAVAILABLE", message, { cause: error, retryAfterMs: 1_000 });
}

export function timedOut(functionId: string): FlotillaError {
  return new FlotillaError("TIMEOUT", `${functionId} did not answer before the deadline`);
}

export function cancelledError(functionId: string): FlotillaError {
  return new FlotillaError("CANCELLED", `the call of ${functionId} was cancelled`);
}
