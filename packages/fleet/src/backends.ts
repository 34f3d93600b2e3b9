// What every worker of the fleet stands on: NATS with its streams, and Redis; our own or given ones.
import { ensureStreams } from "@flotilla/bus";
import type { Env } from "@flotilla/config";
import { connectNats, type WaitOptions, waitForRedis } from "./foreign-servers.ts";
import type { KeptProcess } from "./kept-process.ts";
import { type OwnNats, type OwnRedis, type ServerOptions, startOwnNats, startOwnRedis } from "./servers.ts";

export interface Backends {
  /** With the operator's login, when it is our own. */
  readonly natsUrl: string;
  readonly redisUrl: string;
  /** What a worker's process needs to reach them. */
  readonly workerEnv: Env;
  readonly nats: KeptProcess | null;
  readonly redis: KeptProcess | null;
  stop(graceMs: number): Promise<void>;
}

export interface BackendsOptions extends ServerOptions {
  readonly env: Env;
  /** Every worker that gets a bus user. */
  readonly workers: readonly string[];
  /** How long to wait for servers that are not our own. @default 60000 */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

export async function startBackends(options: BackendsOptions): Promise<Backends> {
  const started: { process: KeptProcess }[] = [];
  const stop = async (graceMs: number): Promise<void> => {
    await Promise.all(started.map(({ process }) => process.stop(graceMs)));
  };
  const keep = <T extends { process: KeptProcess }>(server: T): T => {
    started.push(server);
    return server;
  };
  try {
    const results = await Promise.allSettled([startNats(options, keep), startRedis(options, keep)]);
    for (const result of results) if (result.status === "rejected") throw result.reason;
    const [nats, redis] = results.map((result) => (result.status === "fulfilled" ? result.value : null)) as [
      NatsPart,
      RedisPart,
    ];
    options.runDir.writeAddress("nats", nats.url);
    options.runDir.writeAddress("redis", redis.url);
    const workerEnv = { ...nats.workerEnv, REDIS_URL: redis.url };
    return { natsUrl: nats.url, redisUrl: redis.url, workerEnv, nats: nats.process, redis: redis.process, stop };
  } catch (error) {
    await stop(1_000);
    throw error;
  }
}

interface NatsPart {
  readonly url: string;
  readonly workerEnv: Env;
  readonly process: KeptProcess | null;
}
interface RedisPart {
  readonly url: string;
  readonly process: KeptProcess | null;
}

async function startNats(options: BackendsOptions, keep: (server: OwnNats) => OwnNats): Promise<NatsPart> {
  const given = options.env.NATS_URL;
  const shards = Number(options.env.TURN_SHARDS ?? 1);
  if (given !== undefined && given !== "") {
    await prepareStreams(given, options, shards);
    return { url: given, workerEnv: { NATS_URL: given }, process: null };
  }
  const own = keep(await startOwnNats({ ...options, shards }));
  await prepareStreams(own.url, options, shards);
  const workerEnv = { NATS_URL: own.address, NATS_CREDENTIALS_FILE: own.credentialsFile };
  return { url: own.url, workerEnv, process: own.process };
}

async function startRedis(options: BackendsOptions, keep: (server: OwnRedis) => OwnRedis): Promise<RedisPart> {
  const given = options.env.REDIS_URL;
  if (given !== undefined && given !== "") {
    await waitForRedis(given, waitOptions(options));
    return { url: given, process: null };
  }
  return keep(await startOwnRedis(options));
}

async function prepareStreams(url: string, options: BackendsOptions, shards: number): Promise<void> {
  const nc = await connectNats(url, waitOptions(options));
  try {
    await ensureStreams(nc, { shards });
  } finally {
    await nc.close();
  }
}

function waitOptions({ report, waitMs, signal }: BackendsOptions): WaitOptions {
  return { report, ...(waitMs === undefined ? {} : { timeoutMs: waitMs }), ...(signal && { signal }) };
}
