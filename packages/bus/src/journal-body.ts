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

function slotOf<T extends object>(target: T, key: keyof T): Slot {
  return {
    get: () => target[key],
    set: (value) => {
      target[key] = value as T[keyof T];
    },
  };
}

/** Single bodies: what most large commits are large by. */
function bodySlots(commit: Commit): Slot[] {
  const slots = commit.entries.map((entry) => slotOf(entry, "message"));
  for (const record of commit.ledger)
    if (record.kind === "outcome" && record.result !== undefined) slots.push(slotOf(record, "result"));
  for (const event of commit.events) if ("args" in event && event.args !== undefined) slots.push(slotOf(event, "args"));
  if (commit.state !== null) slots.push(slotOf(commit.state.request, "system_prompt"));
  return slots;
}

/** Whole lists: what is left when a commit is large by their number (many calls, many waiting inputs). */
function listSlots(commit: Commit): Slot[] {
  const { state } = commit;
  return [
    ...(["entries", "events", "ledger", "pending"] as const).map((key) => slotOf(commit, key)),
    ...(state === null ? [] : [slotOf(state, "calls"), slotOf(state, "request")]),
  ];
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

/**
 * The commit's bytes, with every large body replaced by a reference that is already durable. A value that looks like a
 * reference is kept by one too: what arguments and results hold is not ours, and must not be read as one.
 */
export async function packCommit(commit: Commit, blobs: Blobs): Promise<Uint8Array> {
  const text = JSON.stringify(commit);
  const bytes = Buffer.byteLength(text);
  const prompt = commit.state?.request.system_prompt.length ?? 0;
  if (bytes <= inlineLimitBytes && prompt <= promptLimitBytes && !text.includes('"$blob"')) return encoder.encode(text);
  const packed = cloneForPacking(commit);
  const left = await putLargest(bodySlots(packed), bytes, blobs, (value) =>
    typeof value === "string" ? promptLimitBytes : inlineLimitBytes,
  );
  await putLargest(listSlots(packed), left, blobs, () => Number.POSITIVE_INFINITY);
  return encoder.encode(JSON.stringify(packed));
}

/** Puts values away, the largest first, until what is left is on target; answers its size. */
async function putLargest(
  slots: readonly Slot[],
  total: number,
  blobs: Blobs,
  limitOf: (value: unknown) => number,
): Promise<number> {
  const sized = slots
    .map((slot) => ({ slot, value: slot.get(), bytes: Buffer.byteLength(JSON.stringify(slot.get())) }))
    .sort((a, b) => b.bytes - a.bytes);
  const chosen: typeof sized = [];
  let left = total;
  for (const one of sized) {
    const isTooMuch = one.bytes > limitOf(one.value) || (left > commitTargetBytes && one.bytes >= 256);
    if (!isTooMuch && !isBlobRef(one.value)) continue;
    chosen.push(one);
    left -= one.bytes - refBytes;
  }
  await Promise.all(chosen.map(async ({ slot, value }) => slot.set(await blobs.putJson(value))));
  return left;
}

const refBytes = 100;

export async function unpackCommit(commit: Commit, blobs: Blobs): Promise<Commit> {
  await fill(listSlots(commit), blobs);
  await fill(bodySlots(commit), blobs);
  return commit;
}

async function fill(slots: readonly Slot[], blobs: Blobs): Promise<void> {
  await Promise.all(
    slots.map(async (slot) => {
      const value = slot.get();
      if (isBlobRef(value)) slot.set(await blobs.getJson(value));
    }),
  );
}

/** An input's bytes; a body over the limit is stored first and referred to. */
export async function packInput(body: unknown, blobs: Blobs): Promise<Uint8Array> {
  const plain = encoder.encode(JSON.stringify(body));
  if (plain.length <= inlineLimitBytes && !isBlobRef(body)) return plain;
  return encoder.encode(JSON.stringify(await blobs.putJson(body)));
}

export async function unpackInput(data: Uint8Array, blobs: Blobs): Promise<unknown> {
  const value: unknown = JSON.parse(new TextDecoder().decode(data));
  return isBlobRef(value) ? blobs.getJson(value) : value;
}
