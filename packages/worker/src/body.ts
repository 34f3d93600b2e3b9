// Bodies of requests and replies: JSON, through the request store when too large, and the wire form of an error.
import type { ClaimCheck } from "@flotilla/bus";
import { headerNames } from "@flotilla/contracts";
import { type FlotillaError, invalidInput } from "@flotilla/errors";
import { headers as createHeaders, type Msg, type MsgHdrs } from "@nats-io/transport-node";

export interface Reply {
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An empty body stands for no arguments. */
export async function decodeRequest(message: Msg, claimCheck: ClaimCheck): Promise<unknown> {
  const isPlain = !message.headers?.has(headerNames.bodyRef);
  const data = isPlain ? message.data : await claimCheck.decode(message.data, message.headers);
  if (data.length === 0) return {};
  try {
    return JSON.parse(decoder.decode(data)) as unknown;
  } catch {
    throw invalidInput("the body is not JSON");
  }
}

/** The largest body that surely fits a message, whatever the server's limit. */
const alwaysInlineBytes = 256 * 1024;

export async function encodeResult(value: unknown, claimCheck: ClaimCheck): Promise<Reply> {
  const data = encoder.encode(JSON.stringify(value) ?? "null");
  if (data.length <= alwaysInlineBytes) return { data, headers: undefined };
  const headers = createHeaders();
  return { data: await claimCheck.encode(data, headers), headers };
}

export function encodeError(error: FlotillaError): Reply {
  const body = error.toBody();
  const headers = createHeaders();
  headers.set(headerNames.errorCode, body.code);
  // A header is one line.
  headers.set(headerNames.errorMessage, body.message.replace(/[\r\n]+/g, " ").slice(0, 1_000) || body.code);
  return { data: encoder.encode(JSON.stringify(body)), headers };
}
