// The pending approvals of all sessions, from the projection in Redis; nothing else of the gate needs it.
import { FlotillaError } from "@flotilla/errors";
import { connectState } from "@flotilla/state";
import type { Logger } from "@flotilla/telemetry";
import type { Background } from "@flotilla/worker";
import type { PendingIndex } from "../ports.ts";

export interface ProjectionIndex {
  readonly index: PendingIndex;
  readonly background: Background;
}

const notConfigured = "REDIS_URL is not set";

/** Returns at once, whether Redis is there or not. */
export function openProjectionIndex(url: string | undefined, logger: Logger): ProjectionIndex {
  if (url === undefined) return withoutRedis();
  const state = connectState({ url, logger });
  return {
    index: { all: () => state.listApprovals() },
    background: {
      name: "projection",
      // Approvals go on from the journal without Redis, so its absence does not keep the worker from starting.
      async start() {},
      stop: () => state.close(),
      readiness: () =>
        state.connected ? null : "degraded: redis is not reachable; approvals are listed by session only",
    },
  };
}

function withoutRedis(): ProjectionIndex {
  return {
    index: {
      async all() {
        throw new FlotillaError("STORE_UNAVAILABLE", `approvals of all sessions need the projection: ${notConfigured}`);
      },
    },
    background: {
      name: "projection",
      async start() {},
      async stop() {},
      readiness: () => `degraded: ${notConfigured}; approvals are listed by session only`,
    },
  };
}
