// Bodies too large for one message travel through the request store; the message carries the name (Fl-Body-Ref).
import { bucketNames, headerNames, randomId } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamClient } from "@nats-io/jetstream";
import { type ObjectStore, Objm } from "@nats-io/obj";
import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";

export interface ClaimCheck {
  /** The bytes to send; sets the reference header when they were put away. */
  encode(data: Uint8Array, headers: MsgHdrs): Promise<Uint8Array>;
  /** The bytes that were meant, fetched when the headers carry a reference. */
  decode(data: Uint8Array, headers: MsgHdrs | undefined): Promise<Uint8Array>;
}

export function createClaimCheck(nc: NatsConnection, js: JetStreamClient): ClaimCheck {
  let store: Promise<ObjectStore> | null = null;
  const open = (): Promise<ObjectStore> => {
    store ??= new Objm(js).open(bucketNames.request, false).catch((error: unknown) => {
      store = null;
      throw new FlotillaError("BUS_UNAVAILABLE", "the request store is not reachable", { cause: error });
    });
    return store;
  };
  const limit = (nc.info?.max_payload ?? 1024 * 1024) / 2;
  return {
    async encode(data, headers) {
      if (data.length <= limit) return data;
      const name = randomId();
      await (await open()).putBlob({ name }, data);
      headers.set(headerNames.bodyRef, name);
      return new Uint8Array();
    },
    async decode(data, headers) {
      const name = headers?.get(headerNames.bodyRef) ?? "";
      if (name === "") return data;
      const body = await (await open()).getBlob(name);
      if (body === null) throw new FlotillaError("NOT_FOUND", "the body of this message is no longer in the request store");
      return body;
    },
  };
}
