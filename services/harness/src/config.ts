// What the front door reads from its environment.
import { type Env, flag, integer, list, loadConfig, milliseconds, port } from "@flotilla/config";
import { FlotillaError } from "@flotilla/errors";
import { z } from "zod";
import { isLoopback } from "./domain/origin.ts";

const Variables = z.object({
  FLOTILLA_HOST: z.string().min(1).default("127.0.0.1"),
  FLOTILLA_PORT: port().default(7440),
  /** Replica number: added to the port. */
  FLOTILLA_INSTANCE: integer().default(0),
  /** Lines `token workspace role`; without it the door is open, on loopback only. */
  FLOTILLA_TOKENS_FILE: z.string().min(1).optional(),
  /** Host names besides the loopback ones that a browser may use to reach an open door. */
  FLOTILLA_ALLOWED_HOSTS: list(),
  FLOTILLA_BODY_LIMIT_BYTES: integer({ min: 1024 }).default(32 * 1024 * 1024),
  FLOTILLA_SSE_HEARTBEAT_MS: milliseconds(15_000, { min: 100 }),
  /** A reader with more than this unsent is closed. */
  FLOTILLA_SSE_BUFFER_BYTES: integer({ min: 4096 }).default(1024 * 1024),
  /** Workers that must have been live once before the first `ready`; what `flotilla up` starts. */
  FLOTILLA_READY_WORKERS: list(),
  FLOTILLA_CONSOLE_OFF: flag(),
  FLOTILLA_DEFAULT_PROVIDER: z.string().min(1).default("scripted"),
  FLOTILLA_DEFAULT_MODEL: z.string().min(1).default("demo"),
  FLOTILLA_APPROVAL_TTL_MS: milliseconds(24 * 3600 * 1000, { min: 1 }),
});

export interface HarnessConfig {
  readonly host: string;
  readonly port: number;
  readonly tokensFile: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly bodyLimitBytes: number;
  readonly heartbeatMs: number;
  readonly bufferBytes: number;
  readonly readyWorkers: readonly string[];
  readonly hasConsole: boolean;
  readonly defaults: { readonly provider: string; readonly model: string; readonly approvalTtlMs: number };
}

/** Refuses an open door on anything but loopback (wire.md 7). */
export function harnessConfig(env: Env): HarnessConfig {
  const read = loadConfig(Variables, env);
  if (read.FLOTILLA_TOKENS_FILE === undefined && !isLoopback(read.FLOTILLA_HOST)) {
    throw new FlotillaError(
      "CONFIG_INVALID",
      `FLOTILLA_HOST: ${read.FLOTILLA_HOST} is reachable from other machines; set FLOTILLA_TOKENS_FILE or bind 127.0.0.1`,
    );
  }
  return Object.freeze({
    host: read.FLOTILLA_HOST,
    // Port 0 asks the system for a free one.
    port: read.FLOTILLA_PORT === 0 ? 0 : read.FLOTILLA_PORT + read.FLOTILLA_INSTANCE,
    tokensFile: read.FLOTILLA_TOKENS_FILE,
    allowedHosts: read.FLOTILLA_ALLOWED_HOSTS,
    bodyLimitBytes: read.FLOTILLA_BODY_LIMIT_BYTES,
    heartbeatMs: read.FLOTILLA_SSE_HEARTBEAT_MS,
    bufferBytes: read.FLOTILLA_SSE_BUFFER_BYTES,
    readyWorkers: read.FLOTILLA_READY_WORKERS,
    hasConsole: !read.FLOTILLA_CONSOLE_OFF,
    defaults: {
      provider: read.FLOTILLA_DEFAULT_PROVIDER,
      model: read.FLOTILLA_DEFAULT_MODEL,
      approvalTtlMs: read.FLOTILLA_APPROVAL_TTL_MS,
    },
  });
}
