// The projection store as one value: connection, writer's side, readers.

import type { Logger } from "@flotilla/telemetry";
import { openConnection } from "./connection.ts";
import { createProjectionStore } from "./projection-store.ts";
import { createReaders } from "./readers.ts";
import type { State } from "./types.ts";

export interface StateOptions {
  /** `redis://[user:password@]host:port[/db]` or `rediss://…` */
  readonly url: string;
  readonly logger: Logger;
  /** How long one command may take. @default 2000 */
  readonly commandTimeoutMs?: number | undefined;
}

/** Returns at once, whether Redis is there or not; it goes on connecting for as long as it lives. */
export function connectState(options: StateOptions): State {
  const connection = openConnection(options);
  const { redis } = connection;
  return {
    get connected() {
      return connection.isReady;
    },
    async ping() {
      const start = performance.now();
      await connection.run(() => redis.ping());
      return performance.now() - start;
    },
    onReady(handler) {
      redis.on("ready", handler);
      return () => redis.off("ready", handler);
    },
    projection: createProjectionStore(connection),
    ...createReaders(connection),
    close: () => connection.close(),
  };
}
