// The feed's rules about order and silence, with a clock that the test moves and a bus that answers when it says so.
import { defaultGrants, FunctionManifest } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import { type Msg, type NatsConnection, headers as natsHeaders } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RegistryFeed } from "./registry-feed.ts";
import { RegistryTable } from "./registry-table.ts";

const silent = (): void => undefined;
const logger: Logger = { trace: silent, debug: silent, info: silent, warn: silent, error: silent, with: () => logger };
const manifest = (version: string): string =>
  JSON.stringify({ worker: "shop", version, functions: [FunctionManifest.parse({ id: "shop::sell" })] });

interface Stored {
  subject: string;
  seq: number;
  body: string;
  at?: number;
  ttl?: string;
}

class FakeBus {
  stored: Stored[] = [];
  isConnected = true;
  isAnswering = true;
  flushes = 0;
  #callback: (error: Error | null, message: Msg) => void = silent;

  readonly nc = {
    subscribe: (_: string, options: { callback: (error: Error | null, message: Msg) => void }) => {
      this.#callback = options.callback;
      return { unsubscribe: silent };
    },
    flush: () => {
      this.flushes += 1;
      return this.isAnswering ? Promise.resolve() : new Promise<void>(() => undefined);
    },
  } as unknown as NatsConnection;

  readonly jsm = {
    direct: { getBatch: () => Promise.resolve(this.#read()) },
  } as unknown as JetStreamManager;

  live(subject: string, seq: number, body: string): void {
    const headers = natsHeaders();
    headers.set("Nats-Subject", subject);
    headers.set("Nats-Sequence", String(seq));
    headers.set("Nats-Time-Stamp", new Date().toISOString());
    this.#callback(null, { subject: "live", data: Buffer.from(body), headers } as unknown as Msg);
  }

  async *#read(): AsyncGenerator<StoredMsg> {
    for (const [index, { subject, seq, body, at = Date.now(), ttl }] of this.stored.entries()) {
      const header = natsHeaders();
      if (ttl !== undefined) header.set("Nats-TTL", ttl);
      const pending = this.stored.length - index - 1;
      yield { subject, seq, pending, header, data: Buffer.from(body), time: new Date(at) } as unknown as StoredMsg;
    }
  }
}

const worker = "$KV.REGISTRY.worker.shop";
const instance = "$KV.REGISTRY.inst.shop.i0";
let bus: FakeBus;
let table: RegistryTable;
let feed: RegistryFeed;

beforeEach(() => {
  vi.useFakeTimers();
  bus = new FakeBus();
  table = new RegistryTable(defaultGrants);
  const isConnected = (): boolean => bus.isConnected;
  feed = new RegistryFeed({ nc: bus.nc, jsm: bus.jsm, logger, table, isConnected, onChange: silent });
});
afterEach(() => {
  feed.stop();
  vi.useRealTimers();
});

const version = (): string | undefined => table.resolve("shop::sell")?.manifest.version;
const isLive = (): boolean => table.isInstanceLive("shop", "i0");

describe("order (F1)", () => {
  it("does not let a slower read undo what was heard live", async () => {
    bus.stored = [{ subject: worker, seq: 1, body: manifest("1") }];
    await feed.start();
    bus.live(worker, 3, manifest("3"));
    bus.stored = [{ subject: worker, seq: 2, body: manifest("2") }];
    await feed.reload();
    expect(version()).toBe("3");
  });

  it("takes what a read found and the live notices missed", async () => {
    await feed.start();
    bus.live(worker, 1, manifest("1"));
    bus.stored = [{ subject: worker, seq: 2, body: manifest("2") }];
    await feed.reload();
    expect(version()).toBe("2");
  });

  it("starts over after a reconnect, when the sequences may be those of a new stream", async () => {
    await feed.start();
    bus.live(worker, 900, manifest("old"));
    bus.stored = [{ subject: worker, seq: 1, body: manifest("new") }];
    await feed.afterReconnect();
    expect(version()).toBe("new");
  });
});

describe("silence (F2)", () => {
  it("of an instance drops it when the server answers", async () => {
    await feed.start();
    bus.live(instance, 1, "{}");
    await vi.advanceTimersByTimeAsync(15_000);
    expect(isLive()).toBe(true);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(isLive()).toBe(false);
  });

  it("of the whole bus drops nobody, and everybody has a full TTL afterwards", async () => {
    await feed.start();
    bus.live(instance, 1, "{}");
    bus.isAnswering = false;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(isLive()).toBe(true);
    bus.live(worker, 2, manifest("1"));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(isLive()).toBe(true);
  });

  it("while disconnected drops nobody and asks nobody", async () => {
    await feed.start();
    bus.live(instance, 1, "{}");
    bus.isConnected = false;
    const before = bus.flushes;
    await vi.advanceTimersByTimeAsync(120_000);
    expect([isLive(), bus.flushes]).toEqual([true, before]);
  });

  it("of this process (it was stopped for a while) drops nobody", async () => {
    await feed.start();
    bus.live(instance, 1, "{}");
    vi.setSystemTime(Date.now() + 60_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(isLive()).toBe(true);
  });
});

describe("reading (F3)", () => {
  it("takes an entry with a TTL for live, whatever the server's clock says", async () => {
    bus.stored = [{ subject: instance, seq: 1, body: "{}", at: Date.now() - 600_000, ttl: "15s" }];
    await feed.start();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(isLive()).toBe(true);
  });

  it("drops an old entry without a TTL, which nobody may have renewed", async () => {
    bus.stored = [{ subject: instance, seq: 1, body: "{}", at: Date.now() - 600_000 }];
    await feed.start();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(isLive()).toBe(false);
  });

  it("again does not make a silent instance look alive", async () => {
    bus.stored = [{ subject: instance, seq: 1, body: "{}", ttl: "15s" }];
    await feed.start();
    await vi.advanceTimersByTimeAsync(32_000);
    expect(isLive()).toBe(false);
  });
});
