// Durable bodies in the object store under their sha256: written before the record that refers to them (I1).
import { bucketNames, sha256Hex } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { createObjectBodies, type ObjectBodiesDeps } from "./object-bodies.ts";
import { RecentBodies } from "./recent-bodies.ts";
import type { BlobRef, Blobs } from "./types.ts";

const keptBytes = 8 * 1024 * 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function createBlobs(deps: ObjectBodiesDeps): Blobs {
  const bodies = createObjectBodies(deps, bucketNames.blob);
  const recent = new RecentBodies(keptBytes);
  const blobs: Blobs = {
    async put(data) {
      const name = sha256Hex(data);
      if (recent.get(name) !== undefined) return name;
      await bodies.put(name, data);
      // A copy: the caller may reuse its buffer.
      recent.set(name, data.slice());
      return name;
    },
    async get(name) {
      const known = recent.get(name);
      if (known !== undefined) return known;
      const data = await bodies.get(name);
      if (data === null) throw new FlotillaError("NOT_FOUND", `body ${name} is not in the object store`);
      if (sha256Hex(data) !== name) throw new FlotillaError("INTERNAL", `body ${name} is not what its name says`);
      recent.set(name, data);
      return data;
    },
    async putJson(value): Promise<BlobRef> {
      const data = encoder.encode(JSON.stringify(value));
      return { $blob: await blobs.put(data), bytes: data.length };
    },
    async getJson(ref) {
      return JSON.parse(decoder.decode(await blobs.get(ref.$blob))) as unknown;
    },
  };
  return blobs;
}
