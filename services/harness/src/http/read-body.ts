// Reads a JSON body with a limit. Past it the rest is thrown away rather than cut off, so that the client, which may
// still be sending, gets to read the 413.
import type { IncomingMessage } from "node:http";
import { FlotillaError, invalidInput } from "@flotilla/errors";

/** How much of an oversized body is thrown away before the connection is given up. */
const discardFactor = 4;
const deepest = 256;

export async function readJsonBody(
  stream: AsyncIterable<Buffer | string>,
  request: IncomingMessage,
  limit: number,
): Promise<unknown> {
  const announced = Number(request.headers["content-length"] ?? 0);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stream) {
    const chunk = typeof piece === "string" ? Buffer.from(piece) : piece;
    bytes += chunk.length;
    if (bytes > limit * discardFactor) break;
    if (bytes <= limit && announced <= limit) chunks.push(chunk);
  }
  if (bytes > limit || announced > limit) {
    throw new FlotillaError("PAYLOAD_TOO_LARGE", `a body may have ${limit} bytes`, { details: { limit_bytes: limit } });
  }
  return parse(Buffer.concat(chunks));
}

function parse(data: Buffer): unknown {
  if (data.length === 0) return undefined;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch (error) {
    throw new FlotillaError("INVALID_INPUT", "the body is not UTF-8", { field: "body", cause: error });
  }
  if (depthOf(text) > deepest) throw invalidInput(`the body nests deeper than ${deepest} levels`, "body");
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const where = error instanceof SyntaxError ? (/at position \d+/.exec(error.message)?.[0] ?? "") : "";
    throw new FlotillaError("INVALID_INPUT", `the body is not JSON ${where}`.trimEnd(), {
      field: "body",
      cause: error,
    });
  }
}

/** Nesting by brackets outside strings; digests and schemas walk the value recursively. */
function depthOf(text: string): number {
  let depth = 0;
  let most = 0;
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (isString) {
      if (unit === 0x5c) at++;
      else if (unit === 0x22) isString = false;
    } else if (unit === 0x22) isString = true;
    else if (unit === 0x7b || unit === 0x5b) most = Math.max(most, ++depth);
    else if (unit === 0x7d || unit === 0x5d) depth--;
  }
  return most;
}
