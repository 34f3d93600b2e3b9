// Keeps the table current from the registry stream: read whole at start, after every reconnect and every 30 s; in between
// the republished changes are applied.
//
// F1 Changes of one key are applied in the order of their sequences, whether they came live or by reading.
// F2 Silence counts against an instance only while the bus is proven to be there: before anyone is dropped the server must
//    have answered, and after a stall (of the bus, or of this process) everybody gets a full TTL.
// F3 Reading never makes an instance look fresher than it is, except that an entry with a TTL which still exists is live.
import { streamNames, subjects } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { readBatch } from "./direct-read.ts";
import { isGoodbye, parseRegistryKey, type RegistryKey, readInstance, readManifest } from "./registry-entry.ts";
import type { RegistryTable } from "./registry-table.ts";

const reloadMs = 30_000;
const checkMs = 1_000;
const quietMs = 6_000;
const stallMs = 9_000;
const loadPatienceMs = 10_000;

export interface FeedDeps {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly logger: Logger;
  readonly table: RegistryTable;
  readonly isConnected: () => boolean;
  /** Called after every change of the table. */
  readonly onChange: () => void;
}

interface Entry {
  readonly subject: string;
  readonly seq: number;
  readonly data: Uint8Array;
  readonly operation: string;
  readonly storedAt: number;
  readonly heardAt: number;
}

export class RegistryFeed {
  readonly #deps: FeedDeps;
  readonly #sequences = new Map<string, number>();
  readonly #timers: NodeJS.Timeout[] = [];
  #subscription: Subscription | null = null;
  #aliveAt = Date.now();
  #isChecking = false;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
  }

  /** Resolves when the table is complete. */
  async start(): Promise<void> {
    const { nc } = this.#deps;
    const callback = (error: Error | null, message: Msg): void => {
      if (error === null) this.#heard(message);
      else this.#deps.logger.error("the registry cannot be followed", { reason: error.message });
    };
    this.#subscription = nc.subscribe(subjects.liveRegistry, { callback });
    await nc.flush();
    await this.#load();
    this.#aliveAt = Date.now();
    this.#timers.push(
      setInterval(() => void this.reload(), reloadMs),
      setInterval(() => void this.#check(), checkMs),
    );
    for (const timer of this.#timers) timer.unref();
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#subscription?.unsubscribe();
  }

  /** The connection is back, perhaps to a server whose streams were made anew. */
  async afterReconnect(): Promise<void> {
    this.#sequences.clear();
    this.#aliveAt = Date.now();
    this.#deps.table.touchAll(this.#aliveAt);
    await this.reload();
  }

  async reload(): Promise<void> {
    if (!this.#deps.isConnected()) return;
    try {
      await this.#load();
    } catch (error) {
      this.#deps.logger.warn("the registry was not read again", { reason: String(error) });
    }
  }

  async #load(): Promise<void> {
    const found: StoredMsg[] = [];
    for (let seq = 1; ; ) {
      const query = { seq, next_by_subj: subjects.registryAll, batch: 512 };
      const page = await readBatch(this.#deps.jsm, streamNames.registry, query, loadPatienceMs);
      found.push(...page);
      const last = page.at(-1);
      if (last === undefined || last.pending === 0) break;
      seq = last.seq + 1;
    }
    const now = Date.now();
    for (const message of found) this.#apply(entryOfStored(message, now), "read");
    this.#deps.onChange();
  }

  #heard(message: Msg): void {
    const now = Date.now();
    this.#recoverFromStall(now);
    this.#aliveAt = now;
    this.#apply(entryOfLive(message, now), "live");
    this.#deps.onChange();
  }

  #apply(entry: Entry, how: "read" | "live"): void {
    const key = parseRegistryKey(entry.subject);
    const known = this.#sequences.get(entry.subject) ?? 0;
    if (key === null || entry.seq < known || (how === "read" && entry.seq === known)) return;
    this.#sequences.set(entry.subject, entry.seq);
    if (isGoodbye(entry.operation, entry.data)) this.#goodbye(key);
    else if (key.kind === "worker") this.#putManifest(key.worker, entry);
    else this.#putInstance(key.worker, key.instance, entry);
  }

  #goodbye(key: RegistryKey): void {
    if (key.kind === "worker") this.#deps.table.dropManifest(key.worker);
    else this.#deps.table.dropInstance(key.worker, key.instance);
  }

  #putManifest(worker: string, entry: Entry): void {
    const { table, logger } = this.#deps;
    const read = readManifest(entry.data, worker, entry.storedAt);
    if (read === null) {
      logger.warn("a registry entry is not a manifest and was ignored", { worker });
      return;
    }
    if (read.skipped.length > 0)
      logger.warn("functions of a manifest were ignored", { worker, functions: read.skipped });
    const refused = table.putManifest(read.manifest);
    if (refused.length > 0) logger.warn("functions without a grant get no calls", { worker, functions: refused });
  }

  #putInstance(worker: string, instance: string, entry: Entry): void {
    const record = readInstance(entry.data, worker, instance);
    if (record === null)
      this.#deps.logger.warn("an instance entry cannot be read and was ignored", { worker, instance });
    else this.#deps.table.putInstance(record, entry.heardAt);
  }

  /** F2. */
  async #check(): Promise<void> {
    const { nc, table } = this.#deps;
    if (this.#isChecking || !this.#deps.isConnected()) return;
    const isQuiet = Date.now() - this.#aliveAt > quietMs;
    if (!isQuiet && !table.hasExpired(Date.now())) return;
    this.#isChecking = true;
    try {
      await nc.flush();
    } catch {
      // A closed connection proves nothing about anybody.
      return;
    } finally {
      this.#isChecking = false;
    }
    const now = Date.now();
    this.#recoverFromStall(now);
    this.#aliveAt = now;
    const gone = table.expire(now);
    if (gone.length === 0) return;
    this.#deps.logger.info("instances were silent and are no longer called", { instances: gone });
    this.#deps.onChange();
  }

  #recoverFromStall(now: number): void {
    if (now - this.#aliveAt > stallMs) this.#deps.table.touchAll(now);
  }
}

function entryOfStored(message: StoredMsg, now: number): Entry {
  const storedAt = message.time.getTime();
  const hasTtl = message.header.get("Nats-TTL") !== "";
  return {
    subject: message.subject,
    seq: message.seq,
    data: message.data,
    operation: message.header.get("KV-Operation"),
    storedAt,
    heardAt: hasTtl ? now : Math.min(storedAt, now),
  };
}

function entryOfLive(message: Msg, now: number): Entry {
  const header = (name: string): string => message.headers?.get(name) ?? "";
  return {
    // `live.registry.worker.x` stands for `$KV.REGISTRY.worker.x`.
    subject: header("Nats-Subject") || `$KV.REGISTRY.${message.subject.slice("live.registry.".length)}`,
    seq: Number(header("Nats-Sequence")),
    data: message.data,
    operation: header("KV-Operation"),
    storedAt: Date.parse(header("Nats-Time-Stamp")) || now,
    heardAt: now,
  };
}
