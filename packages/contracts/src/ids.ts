// The grammar of ids and the ids that are derived: turn, call, message, entry, tool name, idempotency key.
import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";

/** Ids in subjects and keys: session, turn, message, call, worker, instance. */
export const idPattern = /^[A-Za-z0-9_-]{1,64}$/;
export const functionIdPattern = /^[a-z][a-z0-9_-]{0,63}(::[A-Za-z0-9_-]{1,64}){1,4}$/;

export const Id = z.string().regex(idPattern, "must be 1 to 64 characters of A-Z a-z 0-9 _ -");
export const FunctionId = z.string().regex(functionIdPattern, "must look like namespace::name");

export function sha256Hex(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A fresh random id of 22 URL-safe characters. */
export function randomId(): string {
  return randomBytes(16).toString("base64url");
}

export function turnIdOf(sessionId: string, messageId: string): string {
  return `t-${sha256Hex(`${sessionId}\n${messageId}`).slice(0, 20)}`;
}

/** The id of an assistant message: one per attempt of a model call, so that a repeated attempt is a new message. */
export function assistantMessageId(turnId: string, step: number, attempt: number): string {
  return `${turnId}-${step}-${attempt}`;
}

export function callIdOf(turnId: string, step: number, index: number): string {
  return `${turnId}-${step}-${index}`;
}

/** An entry of a steering or follow-up message; the input's sequence tells it from another input that used the same id. */
export function inboxEntryId(messageId: string, inputSeq: number, index: number): string {
  return `${messageId}-i${inputSeq}-${index}`;
}

export function userEntryId(messageId: string, index: number): string {
  return `${messageId}-user-${index}`;
}

export function resultEntryId(callId: string): string {
  return `fr-${callId}`;
}

/** I4: the idempotency key of a model call (`m`) or tool call (`t`), all of it from the journal. */
export function effectKey(parts: {
  worker: string;
  sessionId: string;
  turnId: string;
  step: number;
  kind: "m" | "t";
  index: number;
  attempt: number;
}): string {
  const { worker, sessionId, turnId, step, kind, index, attempt } = parts;
  return `${worker}.${sessionId}.${turnId}.${step}.${kind}${index}.${attempt}`;
}

/**
 * The name a model sees for a function id: `::` becomes `__`; longer than 64 characters or taken in this request:
 * the first 55 characters, `_` and 8 hex digits of sha256(id).
 */
export function toolNameOf(functionId: string, taken: ReadonlySet<string> = new Set()): string {
  const plain = functionId.replaceAll("::", "__");
  if (plain.length <= 64 && !taken.has(plain)) return plain;
  return `${plain.slice(0, 55)}_${sha256Hex(functionId).slice(0, 8)}`;
}

export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, "utf8")) {
    hash ^= byte;
    hash = Math.imul(hash, 0x01000193) >>> 0;
  }
  return hash >>> 0;
}

/** The shard of a session; the only place that decides it. */
export function shardOf(sessionId: string, shards: number): number {
  return fnv1a32(sessionId) % shards;
}
