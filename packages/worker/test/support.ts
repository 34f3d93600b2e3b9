// Workers for the tests of this package: small functions, run by the production code on a real bus.
import { type Bus, connectBus } from "@flotilla/bus";
import { defineFunction, type FunctionContract } from "@flotilla/contracts";
import { createLogger, type Logger } from "@flotilla/telemetry";
import type { StartedNats } from "@flotilla/testkit";
import { z } from "zod";
import {
  type Background,
  defineWorker,
  type HandlerContext,
  type Implementation,
  implement,
  runWorkers,
  type WorkerDefinition,
  type WorkersHandle,
} from "../src/index.ts";

/** The worker under test; its bus user exists on every test server. */
export const workerName = "demo";

export const echo = defineFunction({
  id: "probe::echo",
  description: "Answers its text.",
  request: z.object({ text: z.string(), repeat: z.number().int().min(1).optional() }),
  response: z.object({ text: z.string() }),
});
export const work = defineFunction({
  id: "probe::work",
  description: "Does what the test says.",
  request: z.object({ name: z.string().default("work") }),
  response: z.unknown(),
  replay: "keyed",
});

export function anEcho(): Implementation {
  return implement(echo, (_context, { text, repeat = 1 }) => ({ text: text.repeat(repeat) }));
}

export function aWork(handle: (context: HandlerContext, name: string) => Promise<unknown> | unknown): Implementation {
  return implement(work, (context, request) => handle(context, request.name));
}

export interface LogRecord extends Record<string, unknown> {
  level: string;
  message: string;
}

export function recordLogs(): { logger: Logger; records: LogRecord[] } {
  const records: LogRecord[] = [];
  const write = (line: string): void => void records.push(JSON.parse(line) as LogRecord);
  return { logger: createLogger({ level: "trace", name: "test", destination: { write } }), records };
}

export interface StartedWorker extends AsyncDisposable {
  readonly handle: WorkersHandle;
  readonly records: LogRecord[];
  readonly instance: string;
}

export interface WorkerSetup {
  readonly functions: readonly Implementation[];
  readonly background?: readonly Background[];
  readonly env?: Record<string, string>;
  readonly name?: string;
}

export function aDefinition(setup: WorkerSetup): WorkerDefinition {
  const { name = workerName, functions, background = [] } = setup;
  return { name, build: () => defineWorker({ name, version: "1.2.3", functions, background, drainSeconds: 5 }) };
}

export async function startWorker(nats: StartedNats, setup: WorkerSetup): Promise<StartedWorker> {
  const { logger, records } = recordLogs();
  const env = { NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile, ...setup.env };
  const handle = runWorkers({ definitions: [aDefinition(setup)], env, logger });
  await handle.ready();
  const instance = handle.workers[0]?.instance ?? "";
  return { handle, records, instance, [Symbol.asyncDispose]: () => handle.stop() };
}

/** A caller with the operator's login, under the name of the orchestrator. */
export async function connectCaller(nats: StartedNats, instance = "caller"): Promise<Bus & AsyncDisposable> {
  const { logger } = recordLogs();
  const bus = await connectBus({
    url: nats.url,
    worker: "turn-orchestrator",
    instance,
    logger,
    connectTimeoutMs: 10_000,
  });
  return Object.assign(bus, { [Symbol.asyncDispose]: () => bus.close() });
}

export function keyOf(name: string, worker = workerName): string {
  return `${worker}.s-1.t-1.1.${name}.1`;
}

/** The error code of a refused promise; fails when it is not refused. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  throw new Error("expected a refusal");
}

export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function aGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

export type AnyContract = FunctionContract;
