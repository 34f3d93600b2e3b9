// What the HTTP routes are built from.
import type { Bus } from "@flotilla/bus";
import type { Logger } from "@flotilla/telemetry";
import type { Authenticator } from "../adapters/tokens-file.ts";
import type { HarnessConfig } from "../config.ts";
import type { Doors, EventSource, Readiness, Sessions } from "../ports.ts";

export interface HttpDeps {
  readonly bus: Pick<Bus, "call" | "callId" | "registry">;
  readonly config: HarnessConfig;
  readonly sessions: Sessions;
  readonly doors: Doors;
  readonly events: EventSource;
  readonly readiness: Readiness;
  readonly auth: Authenticator;
  readonly logger: Logger;
}
