// A worker as a value: its functions, and what a handler gets.
import type { Bus, CallOptions } from "@flotilla/bus";
import type { FunctionContract } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { Registry as MetricsRegistry } from "prom-client";
import type { z } from "zod";

/** Everything a handler may use. */
export interface HandlerContext {
  /** Aborted by `cancel.<worker>.<key>`, by the deadline, and when the drain time is over. Never because the caller vanished. */
  readonly signal: AbortSignal;
  /** Epoch ms. */
  readonly deadline: number;
  readonly logger: Logger;
  /** `Fl-Caller`: a worker's name, `agent` or `client`. */
  readonly caller: string;
  readonly functionId: string;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly turnId: string | undefined;
  readonly callId: string | undefined;
  readonly workspace: string;
  readonly idempotencyKey: string | undefined;
  readonly epoch: number;
  readonly attempt: number;
  /** Calls another function within this call's deadline and trace. */
  call<I extends z.ZodType, O extends z.ZodType>(
    contract: FunctionContract<I, O>,
    payload: z.input<I>,
    options?: CallOptions,
  ): Promise<z.output<O>>;
}

export interface Implementation {
  readonly contract: FunctionContract;
  readonly handle: (context: HandlerContext, request: never, prepared?: Promise<unknown>) => Promise<unknown> | unknown;
  /**
   * What the handler needs to look up first. Begins beside the claim of an effect, so it must change nothing: the handler
   * may not get to run. The handler gets the promise.
   */
  readonly prepare?: (context: HandlerContext, request: never) => Promise<unknown>;
}

/** A part of a worker that runs beside its functions: a durable consumer, an HTTP server, a projector. */
export interface Background {
  readonly name: string;
  /** Contract: resolves when it runs; throws only when the worker cannot start. */
  start(): Promise<void>;
  /** Contract: stops taking new work and finishes or hands over what runs. */
  stop(): Promise<void>;
  /** A reason why the worker is not ready, or null. `degraded:` as a prefix keeps it ready. */
  readiness?(): string | null;
}

export interface Worker {
  readonly name: string;
  readonly version: string;
  readonly functions: readonly Implementation[];
  readonly background: readonly Background[];
  /** Routing priority in the registry. @default 0; a swap ships 100 */
  readonly priority: number;
  /** How long running calls may go on after SIGTERM; `DRAIN_SECONDS` replaces it. @default 300 */
  readonly drainSeconds: number;
}

/** What a worker is built from; created once per process and worker by `runWorkers`. */
export interface Runtime {
  readonly bus: Bus;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  /** Environment the worker's config is parsed from; nothing else reads process.env. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

export interface Clock {
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** One service folder's export: how to build the worker from a runtime. `services/<name>/src/worker.ts` exports it as `definition`. */
export interface WorkerDefinition {
  readonly name: string;
  /** Contract: throws CONFIG_INVALID for an environment it cannot run with. Asked first, before anything is opened. */
  checkEnv?(env: Runtime["env"]): void;
  /** Schema of the worker's variables: checked before anything opens, so that all problems show at once (exit code 78). */
  readonly config?: z.ZodType;
  build(runtime: Runtime): Worker | Promise<Worker>;
}
