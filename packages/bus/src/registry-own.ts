// This worker's own entries in the registry: its manifest, and the instance key that is renewed until it leaves.
//
// R1 `first_registered_at` is written once and never changed by a restart; an identical manifest is not written again.
import { type InstanceRecord, streamNames, subjects, timings, WorkerManifest } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { type NatsConnection, headers as natsHeaders } from "@nats-io/transport-node";
import { isWrongSequence } from "./journal-errors.ts";
import { untilAnswered } from "./patience.ts";
import { readManifest } from "./registry-entry.ts";

export type OwnManifest = Omit<WorkerManifest, "first_registered_at">;

const publishTimeoutMs = 4_000;
const goodbyeTtl = "60s";

export interface OwnDeps {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly worker: string;
  readonly instance: string;
  readonly logger: Logger;
  readonly isConnected: () => boolean;
}

export class OwnEntry {
  readonly #deps: OwnDeps;
  #own: { manifest: OwnManifest; startedAt: number } | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(deps: OwnDeps) {
    this.#deps = deps;
  }

  async register(manifest: OwnManifest): Promise<void> {
    const startedAt = this.#own?.startedAt ?? Date.now();
    const { nc } = this.#deps;
    await untilAnswered(nc, `registering ${manifest.worker}`, () => this.#writeManifest(manifest, "replace"));
    this.#own = { manifest, startedAt };
    await untilAnswered(nc, "writing the instance key", () => this.#writeInstance());
    this.#timer ??= setInterval(() => void this.renew(), timings.instanceRenewMs);
    this.#timer.unref();
  }

  /** The registry may have been made anew while the connection was away. */
  async afterReconnect(): Promise<void> {
    const own = this.#own;
    if (own === null) return;
    await this.renew();
    try {
      await this.#writeManifest(own.manifest, "if missing");
    } catch (error) {
      this.#deps.logger.warn("the manifest could not be checked", { reason: String(error) });
    }
  }

  async renew(): Promise<void> {
    if (this.#own === null || !this.#deps.isConnected()) return;
    try {
      await this.#writeInstance();
    } catch (error) {
      this.#deps.logger.warn("the instance key was not renewed", { reason: String(error) });
    }
  }

  async leave(): Promise<void> {
    this.stop();
    if (this.#own === null) return;
    this.#own = null;
    const headers = natsHeaders();
    headers.set("KV-Operation", "DEL");
    const subject = subjects.registryInstance(this.#deps.worker, this.#deps.instance);
    await this.#deps.js.publish(subject, "", { headers, ttl: goodbyeTtl, timeout: publishTimeoutMs });
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  async #writeManifest(manifest: OwnManifest, mode: "replace" | "if missing"): Promise<void> {
    const { js, jsm } = this.#deps;
    const subject = subjects.registryWorker(manifest.worker);
    for (;;) {
      const found = await jsm.direct.getMessage(streamNames.registry, { last_by_subj: subject });
      const before = found === null ? null : readManifest(found.data, manifest.worker, found.time.getTime());
      if (before !== null && mode === "if missing") return;
      const firstRegisteredAt = before?.manifest.first_registered_at ?? Date.now();
      const next = WorkerManifest.parse({ ...manifest, first_registered_at: firstRegisteredAt });
      if (before !== null && JSON.stringify(next) === JSON.stringify(before.manifest)) return;
      try {
        const expect = { lastSubjectSequence: found?.seq ?? 0 };
        await js.publish(subject, JSON.stringify(next), { expect, timeout: publishTimeoutMs });
        return;
      } catch (error) {
        // Another replica of this worker was first: its entry decides what is left to write.
        if (!isWrongSequence(error)) throw error;
      }
    }
  }

  async #writeInstance(): Promise<void> {
    const { js, worker, instance } = this.#deps;
    if (this.#own === null) return;
    const record: InstanceRecord = { worker, instance, started_at: this.#own.startedAt };
    const ttl = `${timings.instanceTtlMs / 1_000}s`;
    await js.publish(subjects.registryInstance(worker, instance), JSON.stringify(record), {
      ttl,
      timeout: publishTimeoutMs,
    });
  }
}
