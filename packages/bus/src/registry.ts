// The live registry: the table kept current from the registry stream, and this worker's own entry in it.
//
// G1 Read whole at start, on every reconnect and every 30 s; in between the republished changes are applied.
// G2 `first_registered_at` is written once and never changed by a restart.
import { type InstanceRecord, InstanceRecord as InstanceSchema, streamNames, subjects, timings, WorkerManifest } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { JetStreamClient, JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import { headers as natsHeaders, type NatsConnection } from "@nats-io/transport-node";
import { readBatch } from "./direct-read.ts";
import { isWrongSequence } from "./journal-errors.ts";
import { RegistryTable } from "./registry-table.ts";
import type { Registry } from "./types.ts";

const reloadMs = 30_000;
const decoder = new TextDecoder();

export interface RegistryDeps {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly worker: string;
  readonly instance: string;
  readonly logger: Logger;
  readonly grants: Readonly<Record<string, readonly string[]>>;
  readonly isConnected: () => boolean;
}

export interface LiveRegistry extends Registry {
  /** Subscribes and loads; resolves when the table is complete. */
  start(): Promise<void>;
  /** The connection is back: everybody gets a full TTL, then the table is read again. */
  afterReconnect(): Promise<void>;
  stop(): void;
}

export function createRegistry(deps: RegistryDeps): LiveRegistry {
  const { nc, js, jsm, logger } = deps;
  const table = new RegistryTable(deps.grants);
  const waiters = new Set<() => void>();
  let timers: NodeJS.Timeout[] = [];
  let isRenewing = false;
  let own: { manifest: Omit<WorkerManifest, "first_registered_at">; startedAt: number } | null = null;

  const changed = (): void => {
    for (const wake of [...waiters]) wake();
  };

  function apply(subject: string, data: Uint8Array, operation: string, at: number): void {
    const [kind, worker = "", instance = ""] = subject.slice("$KV.REGISTRY.".length).split(".");
    const isGone = operation === "DEL" || operation === "PURGE" || data.length === 0;
    if (kind === "worker") {
      if (isGone) table.dropManifest(worker);
      else putManifest(worker, data);
    } else if (kind === "inst") {
      if (isGone) table.dropInstance(worker, instance);
      else putInstance(worker, instance, data, at);
    }
    changed();
  }

  function putManifest(worker: string, data: Uint8Array): void {
    const parsed = parse(WorkerManifest, data);
    if (parsed === null || parsed.worker !== worker) logger.warn("a registry entry could not be read", { worker });
    else table.putManifest(parsed);
  }

  function putInstance(worker: string, instance: string, data: Uint8Array, at: number): void {
    const parsed: InstanceRecord = parse(InstanceSchema, data) ?? { worker, instance, started_at: at };
    if (Date.now() - at <= timings.instanceTtlMs) table.putInstance({ ...parsed, worker, instance }, at);
  }

  async function load(): Promise<void> {
    const found: StoredMsg[] = [];
    for (let seq = 1; ; ) {
      const page = await readBatch(jsm, streamNames.registry, { seq, next_by_subj: subjects.registryAll, batch: 512 });
      found.push(...page);
      const last = page.at(-1);
      if (last === undefined || last.pending === 0) break;
      seq = last.seq + 1;
    }
    for (const message of found) apply(message.subject, message.data, message.header.get("KV-Operation"), message.time.getTime());
  }

  const loadQuietly = async (): Promise<void> => {
    try {
      if (deps.isConnected()) await load();
    } catch (error) {
      logger.debug("the registry was not read again", { reason: String(error) });
    }
  };

  async function writeManifest(manifest: Omit<WorkerManifest, "first_registered_at">): Promise<void> {
    const subject = subjects.registryWorker(manifest.worker);
    for (let tries = 0; tries < 10; tries++) {
      const found = await jsm.direct.getMessage(streamNames.registry, { last_by_subj: subject });
      const before = found === null || found.data.length === 0 ? null : parse(WorkerManifest, found.data);
      const next = { ...manifest, first_registered_at: before?.first_registered_at || Date.now() };
      if (before !== null && JSON.stringify(WorkerManifest.parse(next)) === JSON.stringify(before)) return;
      try {
        await js.publish(subject, JSON.stringify(next), { expect: { lastSubjectSequence: found?.seq ?? 0 }, timeout: 5_000 });
        return;
      } catch (error) {
        if (!isWrongSequence(error)) throw error;
      }
    }
    throw new FlotillaError("BUS_UNAVAILABLE", `the registry entry of ${manifest.worker} is contended`);
  }

  async function writeInstance(): Promise<void> {
    if (own === null) return;
    const record: InstanceRecord = { worker: deps.worker, instance: deps.instance, started_at: own.startedAt };
    await js.publish(subjects.registryInstance(deps.worker, deps.instance), JSON.stringify(record), { ttl: "15s", timeout: 4_000 });
  }

  const renew = (): void => {
    if (!deps.isConnected()) return;
    writeInstance().catch((error: unknown) => logger.debug("the instance key was not renewed", { reason: String(error) }));
  };

  return {
    async start() {
      nc.subscribe(subjects.liveRegistry, {
        callback: (error, message) => {
          if (error !== null) return;
          // `live.registry.worker.x` stands for `$KV.REGISTRY.worker.x`.
          const subject = `$KV.REGISTRY.${message.subject.slice("live.registry.".length)}`;
          apply(subject, message.data, message.headers?.get("KV-Operation") ?? "", Date.now());
        },
      });
      await nc.flush();
      await load();
      timers = [
        setInterval(() => void loadQuietly(), reloadMs),
        setInterval(() => {
          if (deps.isConnected() && table.expire(Date.now())) changed();
        }, 1_000),
      ];
      for (const timer of timers) timer.unref();
    },
    async afterReconnect() {
      table.touchAll(Date.now());
      await loadQuietly();
      renew();
    },
    stop() {
      for (const timer of timers) clearInterval(timer);
    },
    resolve: (functionId) => table.resolve(functionId),
    functions: () => table.functions(),
    workers: () => table.manifests().map((manifest) => ({ manifest, instances: table.instancesOf(manifest.worker) })),
    isInstanceLive: (worker, instance) => table.isInstanceLive(worker, instance),
    reportNoResponders(worker) {
      table.dropInstances(worker);
      changed();
    },
    changed(timeoutMs, signal) {
      return new Promise((resolve) => {
        const done = (): void => {
          waiters.delete(done);
          clearTimeout(timer);
          signal?.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, timeoutMs);
        waiters.add(done);
        signal?.addEventListener("abort", done, { once: true });
        if (signal?.aborted === true) done();
      });
    },
    async register(manifest) {
      own ??= { manifest, startedAt: Date.now() };
      await writeManifest(manifest);
      await writeInstance();
      if (isRenewing) return;
      isRenewing = true;
      const timer = setInterval(renew, timings.instanceRenewMs);
      timer.unref();
      timers.push(timer);
    },
    async leave() {
      if (own === null) return;
      own = null;
      const headers = natsHeaders();
      headers.set("KV-Operation", "DEL");
      await js.publish(subjects.registryInstance(deps.worker, deps.instance), "", { headers, timeout: 2_000 });
    },
  };
}

function parse<T>(schema: { safeParse(value: unknown): { success: true; data: T } | { success: false } }, data: Uint8Array): T | null {
  try {
    const result = schema.safeParse(JSON.parse(decoder.decode(data)));
    return result.success ? result.data : null;
  } catch {
    return null;
  }
}
