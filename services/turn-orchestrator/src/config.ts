// What the orchestrator reads from its environment.
import { z } from "zod";

const ms = (fallback: number) => z.coerce.number().int().positive().default(fallback);

export const OrchestratorConfig = z.object({
  FLOTILLA_DEFAULT_PROVIDER: z.string().default("scripted"),
  FLOTILLA_DEFAULT_MODEL: z.string().default("demo"),
  FLOTILLA_APPROVAL_TTL_MS: ms(24 * 3600 * 1000),
  /** Longest one model call may take. */
  FLOTILLA_MODEL_TIMEOUT_MS: ms(600_000),
  /** Retries of a failed model call on one model of the chain. */
  FLOTILLA_MODEL_RETRIES: z.coerce.number().int().min(0).max(5).default(3),
  /** First pause between retries; doubles each time. */
  FLOTILLA_RETRY_BASE_MS: ms(250),
  /** Longest `retry-after` that is waited for; a longer one goes to the next model of the chain. */
  FLOTILLA_RETRY_MAX_MS: ms(300_000),
  /** Sessions whose working context is kept in memory. */
  FLOTILLA_SESSION_CACHE: ms(500),
  /** Take-overs of one open step before the turn fails with TURN_CRASH_LOOP. */
  FLOTILLA_MAX_TAKEOVERS: ms(3),
});
export type OrchestratorConfig = z.infer<typeof OrchestratorConfig>;
