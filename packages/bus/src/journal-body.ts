// Keeping stored records small: bodies over 32 KiB go to the object store, the record holds a reference (I12).
import type { Commit } from "@flotilla/contracts";
import type { BlobRef, Blobs } from "./types.ts";

export const inlineLimitBytes = 32 * 1024;
/** Aim for a commit, under the hard limit of 256 KiB. */
export const commitTargetBytes = 200 * 1024;
export const commitLimitBytes = 256 * 1024;

const encoder = new TextEncoder();

export function isBlobRef(value: unknown): value is BlobRef {
  return typeof value === "object" && value !== null && "$blob" in value && "bytes" in value;
}

/** A place in a commit whose value may live in the object store. */
interface Slot {
  readonly get: () => unknown;
  readonly set: (value: unknown) => void;
}

function slotsOf(commit: Commit): Slot[] {
  const slots: Slot[] = [];
  const add = <T extends object>(target: T, key: keyof T): void => {
    slots.push({
      get: () => target[key],
      set: (value) => {
        target[key] = value as T[keyof T];
      },
    });
  };
  for (const entry of commit.entries) add(entry, "message");
  for (const record of commit.ledger)
    if (record.kind === "outcome" && record.result !== undefined) add(record, "result");
  for (const event of commit.events) if ("args" in event) add(event, "args");
  if (commit.state !== null && commit.state.request.system_prompt.length > 1024)
    add(commit.state.request, "system_prompt");
  return slots;
}

function cloneForPacking(commit: Commit): Commit {
  return {
    ...commit,
    entries: commit.entries.map((entry) => ({ ...entry })),
    ledger: commit.ledger.map((record) => ({ ...record })),
    events: commit.events.map((event) => ({ ...event })),
    state: commit.state === null ? null : { ...commit.state, request: { ...commit.state.request } },
  };
}

/** A long system prompt is the same in every commit of its turn: kept by reference from 8 KiB on. */
const promptLimitBytes = 8 * 1024;

/** The commit's bytes, with every large body replaced by a reference that is already durable. */
export async function packCommit(commit: Commit, blobs: Blobs): Promise<Uint8Array> {
  const plain = encoder.encode(JSON.stringify(commit));
  const prompt = commit.state?.request.system_prompt.length ?? 0;
  if (plain.length <= inlineLimitBytes && prompt <= promptLimitBytes) return plain;
  const packed = cloneForPacking(commit);
  const sized = slotsOf(packed)
    .map((slot) => ({ slot, bytes: Buffer.byteLength(JSON.stringify(slot.get()) ?? "") }))
    .sort((a, b) => b.bytes - a.bytes);
  let total = plain.length;
  for (const { slot, bytes } of sized) {
    const isPrompt = typeof slot.get() === "string";
    const limit = isPrompt ? promptLimitBytes : inlineLimitBytes;
    if (bytes <= limit && total <= commitTargetBytes) continue;
    if (bytes < 256) break;
    slot.set(await blobs.putJson(slot.get()));
    total -= bytes - 100;
  }
  return encoder.encode(JSON.stringify(packed));
}

export async function unpackCommit(commit: Commit, blobs: Blobs): Promise<Commit> {
  for (const slot of slotsWithRefs(commit)) {
    const value = slot.get();
    if (isBlobRef(value)) slot.set(await blobs.getJson(value));
  }
  return commit;
}

function slotsWithRefs(commit: Commit): Slot[] {
  const slots = slotsOf(commit).filter((slot) => isBlobRef(slot.get()));
  const request = commit.state?.request;
  if (request !== undefined && isBlobRef(request.system_prompt)) {
    slots.push({
      get: () => request.system_prompt,
      set: (value) => {
        request.system_prompt = value as string;
      },
    });
  }
  return slots;
}

/** An input's bytes; a body over the limit is stored first and referred to. */
export async function packInput(body: unknown, blobs: Blobs): Promise<Uint8Array> {
  const plain = encoder.encode(JSON.stringify(body));
  if (plain.length <= inlineLimitBytes) return plain;
  return encoder.encode(JSON.stringify(await blobs.putJson(body)));
}

export async function unpackInput(data: Uint8Array, blobs: Blobs): Promise<unknown> {
  const value: unknown = JSON.parse(new TextDecoder().decode(data));
  return isBlobRef(value) ? blobs.getJson(value) : value;
}
