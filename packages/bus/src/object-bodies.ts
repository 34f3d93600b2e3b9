// Bodies in an object bucket, stored once under their name and read by direct gets.
//
// O1 The layout on disk is the object store's own, so its tools can read it. The client's reader is not used: it makes a
//    consumer per read, and who may create consumers can have messages delivered to any subject, past every permission.
// O2 The record of a body is written after its chunks and only if there is none: half a body is never visible.
import { createHash } from "node:crypto";
import { randomId } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamClient, JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { readBatch } from "./direct-read.ts";
import { isWrongSequence } from "./journal-errors.ts";
import { pause, untilAnswered } from "./patience.ts";

const chunkBytes = 512 * 1024;
const publishTimeoutMs = 5_000;
const decoder = new TextDecoder();

interface ObjectRecord {
  name: string;
  bucket: string;
  nuid: string;
  size: number;
  chunks: number;
  digest: string;
  mtime: string;
  deleted?: boolean;
  /** Where the chunks begin in the stream, so that a reader need not search from the start. */
  metadata?: { first_seq?: string };
}

export interface ObjectBodies {
  put(name: string, data: Uint8Array): Promise<void>;
  /** Null when there is no such body. */
  get(name: string): Promise<Uint8Array | null>;
}

export interface ObjectBodiesDeps {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
}

export function createObjectBodies(deps: ObjectBodiesDeps, bucket: string, patienceMs?: number): ObjectBodies {
  const place = { ...deps, bucket, stream: `OBJ_${bucket}` };
  return {
    put: (name, data) => untilAnswered(deps.nc, "storing a body", () => write(place, name, data), patienceMs),
    get: (name) => untilAnswered(deps.nc, "reading a body", () => read(place, name), patienceMs),
  };
}

interface Place extends ObjectBodiesDeps {
  readonly bucket: string;
  readonly stream: string;
}

async function write(place: Place, name: string, data: Uint8Array): Promise<void> {
  const { js, bucket, jsm, stream } = place;
  const before = await jsm.direct.getMessage(stream, { last_by_subj: recordSubject(place, name) });
  if (before !== null && recordOf(before).deleted !== true) return;
  const nuid = randomId();
  const chunks: Uint8Array[] = [];
  for (let start = 0; start < data.length; start += chunkBytes) chunks.push(data.subarray(start, start + chunkBytes));
  const acks = await Promise.all(
    chunks.map((chunk) => js.publish(chunkSubject(place, nuid), chunk, { timeout: publishTimeoutMs })),
  );
  const record: ObjectRecord = {
    name,
    bucket,
    nuid,
    size: data.length,
    chunks: chunks.length,
    digest: digestOf(data),
    mtime: new Date().toISOString(),
    metadata: { first_seq: String(Math.min(...acks.map((ack) => ack.seq), Number.MAX_SAFE_INTEGER)) },
  };
  try {
    const expect = { lastSubjectSequence: before?.seq ?? 0 };
    await js.publish(recordSubject(place, name), JSON.stringify(record), { expect, timeout: publishTimeoutMs });
  } catch (error) {
    // O2: somebody stored the same name first.
    if (!isWrongSequence(error)) throw error;
  }
}

async function read(place: Place, name: string): Promise<Uint8Array | null> {
  // A replica may lag behind a store that was just acknowledged: what is missing is asked for again, at the leader.
  for (let tries = 0; ; tries++) {
    const query = { last_by_subj: recordSubject(place, name) };
    const found =
      (await place.jsm.direct.getMessage(place.stream, query)) ??
      (await place.jsm.streams.getMessage(place.stream, query));
    if (found === null) return null;
    const record = recordOf(found);
    if (record.deleted === true) return null;
    const body = await readChunks(place, record);
    if (body.length === record.size && digestOf(body) === record.digest) return body;
    if (tries === 5) throw new FlotillaError("INTERNAL", `body ${name} is incomplete or damaged`);
    await pause(50 * 2 ** tries);
  }
}

async function readChunks(place: Place, record: ObjectRecord): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const subject = chunkSubject(place, record.nuid);
  let seq = Math.max(1, Number(record.metadata?.first_seq ?? 1) || 1);
  while (parts.length < record.chunks) {
    const page = await readBatch(place.jsm, place.stream, { seq, next_by_subj: subject, batch: 64 });
    const last = page.at(-1);
    if (last === undefined) break;
    parts.push(...page.map((message) => message.data));
    seq = last.seq + 1;
  }
  return Buffer.concat(parts);
}

function recordOf(message: StoredMsg): ObjectRecord {
  return JSON.parse(decoder.decode(message.data)) as ObjectRecord;
}

function recordSubject(place: Place, name: string): string {
  return `$O.${place.bucket}.M.${Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`;
}

function chunkSubject(place: Place, nuid: string): string {
  return `$O.${place.bucket}.C.${nuid}`;
}

function digestOf(data: Uint8Array): string {
  const hash = createHash("sha256").update(data).digest("base64").replaceAll("+", "-").replaceAll("/", "_");
  return `SHA-256=${hash}`;
}
