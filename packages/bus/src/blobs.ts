// Durable bodies in the object store under their sha256: written before the record that refers to them (I1).
import { bucketNames, sha256Hex } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamClient } from "@nats-io/jetstream";
import { type ObjectStore, Objm } from "@nats-io/obj";
import type { BlobRef, Blobs } from "./types.ts";

const keptBytes = 8 * 1024 * 1024;

export function createBlobs(js: JetStreamClient): Blobs {
  let store: Promise<ObjectStore> | null = null;
  const open = (): Promise<ObjectStore> => {
    store ??= new Objm(js).open(bucketNames.blob, false).catch((error: unknown) => {
      store = null;
      throw new FlotillaError("BUS_UNAVAILABLE", "the object store is not reachable", { cause: error });
    });
    return store;
  };
  const kept = new RecentBodies(keptBytes);

  const blobs: Blobs = {
    async put(data) {
      const name = sha256Hex(data);
      if (kept.get(name) !== undefined) return name;
      const bucket = await open();
      const info = await bucket.info(name);
      if (info === null || info.deleted) await bucket.putBlob({ name }, data);
      kept.set(name, data);
      return name;
    },
    async get(name) {
      const recent = kept.get(name);
      if (recent !== undefined) return recent;
      const data = await (await open()).getBlob(name);
      if (data === null) throw new FlotillaError("NOT_FOUND", `body ${name} is not in the object store`);
      if (sha256Hex(data) !== name) throw new FlotillaError("INTERNAL", `body ${name} is damaged`);
      kept.set(name, data);
      return data;
    },
    async putJson(value): Promise<BlobRef> {
      const data = new TextEncoder().encode(JSON.stringify(value));
      return { $blob: await blobs.put(data), bytes: data.length };
    },
    async getJson(ref) {
      return JSON.parse(new TextDecoder().decode(await blobs.get(ref.$blob))) as unknown;
    },
  };
  return blobs;
}

/** Recently used bodies, oldest out first, bounded by their total size. */
class RecentBodies {
  readonly #limit: number;
  readonly #bodies = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(name: string): Uint8Array | undefined {
    return this.#bodies.get(name);
  }

  set(name: string, data: Uint8Array): void {
    if (this.#bodies.has(name) || data.length > this.#limit / 4) return;
    this.#bodies.set(name, data);
    this.#bytes += data.length;
    for (const [oldest, body] of this.#bodies) {
      if (this.#bytes <= this.#limit) return;
      this.#bodies.delete(oldest);
      this.#bytes -= body.length;
    }
  }
}
