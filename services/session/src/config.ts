// The session worker's configuration.
import { type Env, loadConfig, milliseconds } from "@flotilla/config";
import { z } from "zod";

export const SessionConfig = z.object({
  REDIS_URL: z.string().min(1).default("redis://127.0.0.1:6379"),
  /** How long `session-tree::list` waits for the projection to catch up before it answers. */
  SESSION_LIST_WAIT_MS: milliseconds(2_000, { max: 30_000 }),
});
export type SessionConfig = z.output<typeof SessionConfig>;

export function sessionConfig(env: Env): SessionConfig {
  return loadConfig(SessionConfig, env);
}
