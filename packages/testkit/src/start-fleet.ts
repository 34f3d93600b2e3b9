// A whole fleet in the test's process, on a NATS and a Redis of its own; the workers meet only on the bus.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bus, connectBus } from "@flotilla/bus";
import { randomId } from "@flotilla/contracts";
import { allWorkers, freePort, loadDefinitions, waitUntilReady } from "@flotilla/fleet";
import { createLogger } from "@flotilla/telemetry";
import { runWorkers, type WorkerDefinition, type WorkersHandle } from "@flotilla/worker";
import { type StartedNats, startNats } from "./start-nats.ts";
import { type StartedRedis, startRedis } from "./start-redis.ts";

export interface StartFleetOptions {
  /** Workers by name, loaded from their folders. @default all, unless `definitions` is given */
  readonly workers?: readonly string[];
  /** Workers by value, besides those named. */
  readonly definitions?: readonly WorkerDefinition[];
  /** Over the fleet's own variables. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface StartedFleet extends AsyncDisposable {
  /** The front door; empty without a harness. */
  readonly url: string;
  readonly nats: StartedNats;
  readonly redis: StartedRedis;
  /** With the operator's login. */
  readonly bus: Bus;
  readonly workers: WorkersHandle;
  /** FLOTILLA_HOME of the workers. */
  readonly home: string;
  stop(): Promise<void>;
}

export async function startFleet(options: StartFleetOptions = {}): Promise<StartedFleet> {
  const names = options.workers ?? (options.definitions === undefined ? allWorkers() : []);
  const definitions = [...(await loadDefinitions(names)), ...(options.definitions ?? [])];
  const stack = new AsyncDisposableStack();
  try {
    return await assemble(stack, definitions, options.env ?? {});
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function assemble(
  stack: AsyncDisposableStack,
  definitions: readonly WorkerDefinition[],
  env: Readonly<Record<string, string>>,
): Promise<StartedFleet> {
  const workerNames = definitions.map(({ name }) => name);
  const home = await mkdtemp(join(tmpdir(), "flotilla-home-"));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const nats = stack.use(await startNats({ workers: workerNames, ...shardsOf(env) }));
  const redis = stack.use(await startRedis());
  const port = await freePort();
  const fleetEnv = {
    NATS_URL: nats.address,
    NATS_CREDENTIALS_FILE: nats.credentialsFile,
    REDIS_URL: redis.url,
    FLOTILLA_HOME: home,
    FLOTILLA_PORT: String(port),
    FLOTILLA_READY_WORKERS: workerNames.filter((name) => name !== "harness").join(","),
    DRAIN_SECONDS: "1",
    ...env,
  };
  const workers = runWorkers({ definitions, env: fleetEnv });
  stack.defer(() => workers.stop());
  await workers.ready();
  const bus = await operatorBus(nats.url);
  stack.defer(() => bus.close());
  const url = workerNames.includes("harness") ? `http://127.0.0.1:${fleetEnv.FLOTILLA_PORT}` : "";
  await waitUntilReady({ urls: url === "" ? [] : [url], failure: () => null, timeoutMs: 20_000 });
  const stop = (): Promise<void> => stack.disposeAsync();
  return { url, nats, redis, bus, workers, home, stop, [Symbol.asyncDispose]: stop };
}

/** A bus connection that may do everything. */
export function operatorBus(url: string): Promise<Bus> {
  const logger = createLogger({ level: "warn", name: "test" });
  return connectBus({ url, worker: "operator", instance: `test-${randomId()}`, logger });
}

function shardsOf(env: Readonly<Record<string, string>>): { shards?: number } {
  return env.TURN_SHARDS === undefined ? {} : { shards: Number(env.TURN_SHARDS) };
}
