// Bodies too large for one message travel through the request store; the message carries the name (Fl-Body-Ref).
import { bucketNames, headerNames, randomId } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { MsgHdrs } from "@nats-io/transport-node";
import { createObjectBodies, type ObjectBodiesDeps } from "./object-bodies.ts";

export interface ClaimCheck {
  /** The bytes to send; sets the reference header when they were put away. */
  encode(data: Uint8Array, headers: MsgHdrs): Promise<Uint8Array>;
  /** The bytes that were meant, fetched when the headers carry a reference. */
  decode(data: Uint8Array, headers: MsgHdrs | undefined): Promise<Uint8Array>;
}

/** Half of the server's limit for one message; nothing is opened or stored for a smaller body. */
export function createClaimCheck(deps: ObjectBodiesDeps): ClaimCheck {
  const bodies = createObjectBodies(deps, bucketNames.request, 20_000);
  return {
    async encode(data, headers) {
      if (data.length <= (deps.nc.info?.max_payload ?? 1024 * 1024) / 2) return data;
      const name = randomId();
      await bodies.put(name, data);
      headers.set(headerNames.bodyRef, name);
      return new Uint8Array();
    },
    async decode(data, headers) {
      const name = headers?.get(headerNames.bodyRef) ?? "";
      if (name === "") return data;
      const body = await bodies.get(name);
      if (body !== null) return body;
      throw new FlotillaError("BUS_UNAVAILABLE", "the body of this message is no longer in the request store");
    },
  };
}
