// What the tests of the bus share: buses by worker, a served function, and a log to look into.
import { FunctionManifest, headerNames, subjects } from "@flotilla/contracts";
import type { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { StartedNats } from "@flotilla/testkit";
import { type Msg, headers as natsHeaders } from "@nats-io/transport-node";
import { type Bus, type BusOptions, connectBus } from "../src/index.ts";

export interface RecordedLogger extends Logger {
  readonly lines: string[];
}

export function recordedLogger(): RecordedLogger {
  const lines: string[] = [];
  const at = (level: string) => (message: string, meta?: unknown) => {
    lines.push(`${level} ${message} ${meta === undefined ? "" : JSON.stringify(meta)}`);
  };
  const logger: RecordedLogger = {
    lines,
    trace: at("trace"),
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: () => logger,
  };
  return logger;
}

/** A connected bus that the stack closes. */
export async function busOf(
  stack: AsyncDisposableStack,
  nats: StartedNats,
  worker: string,
  options: Partial<BusOptions> = {},
): Promise<Bus> {
  const url = nats.urlFor(worker);
  const bus = await connectBus({ url, worker, instance: `${worker}-0`, logger: recordedLogger(), ...options });
  stack.defer(() => bus.close());
  return bus;
}

export type Answer = (request: unknown, message: Msg) => unknown;

export interface ServeOptions extends Partial<FunctionManifest> {
  readonly priority?: number;
}

/** Serves one function and registers the worker with it. */
export async function serve(bus: Bus, id: string, answer: Answer, options: ServeOptions = {}): Promise<void> {
  await answerCalls(bus, id, answer);
  const { priority = 0, ...fields } = options;
  const fn = FunctionManifest.parse({ id, replay: "safe", timeout_ms: 5_000, ...fields });
  await bus.registry.register({ worker: bus.worker, version: "1.0.0", priority, functions: [fn], meta: {} });
}

export async function answerCalls(bus: Bus, id: string, answer: Answer): Promise<void> {
  const respond = async (message: Msg): Promise<void> => {
    const headers = natsHeaders();
    const request = JSON.parse(Buffer.from(await bus.claimCheck.decode(message.data, message.headers)).toString());
    const value = await answer(request, message);
    if (value === undefined) return;
    const body = await bus.claimCheck.encode(Buffer.from(JSON.stringify(value)), headers);
    message.respond(body, { headers });
  };
  bus.nc.subscribe(subjects.call(bus.worker, id), {
    queue: bus.worker,
    callback: (_, message) => {
      respond(message).catch((error: Error & { code?: string }) => {
        const headers = natsHeaders();
        headers.set(headerNames.errorCode, error.code ?? "INTERNAL");
        headers.set(headerNames.errorMessage, error.message);
        message.respond(JSON.stringify(error), { headers });
      });
    },
  });
  await bus.nc.flush();
}

/** What a promise was rejected with, as plain data; fails when it was not rejected. */
export async function rejection(
  promise: Promise<unknown>,
): Promise<{ code: string; message: string; field?: string; retryAfterMs?: number; details?: unknown }> {
  try {
    await promise;
  } catch (error) {
    const { code, message, field, retryAfterMs, details } = error as FlotillaError;
    return JSON.parse(JSON.stringify({ code, message, field, retryAfterMs, details }));
  }
  throw new Error("it was expected to be rejected");
}
