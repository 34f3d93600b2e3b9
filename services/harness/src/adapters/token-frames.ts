// Token frames from the bus: any provider, in any language, sends them, so what is malformed is dropped here.
import type { TokenFrame } from "@flotilla/contracts";
import { z } from "zod";

const count = z.number().int().nonnegative();
const Frame = z.object({
  turn_id: z.string(),
  message_id: z.string(),
  n: count,
  block: count,
  kind: z.enum(["text", "thinking", "function_call"]),
  offset: count,
  text: z.string(),
});

const decoder = new TextDecoder();

export function readFrame(data: Uint8Array): TokenFrame | null {
  return Frame.safeParse(readJson(data)).data ?? null;
}

export function readFrames(data: Uint8Array): TokenFrame[] | null {
  return z.array(Frame).safeParse(readJson(data)).data ?? null;
}

function readJson(data: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(data));
  } catch {
    return undefined;
  }
}
