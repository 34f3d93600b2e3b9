// A harness on real NATS for tests: built from its definition, with a bus user of its own.
import { type Bus, connectBus } from "@flotilla/bus";
import type { Commit, CommitKind, StoredCommit } from "@flotilla/contracts";
import { createLogger, type Logger } from "@flotilla/telemetry";
import { freePort, type StartedNats } from "@flotilla/testkit";
import { type Implementation, systemClock, type Worker } from "@flotilla/worker";
import { Registry } from "prom-client";
import { definition } from "../src/worker.ts";

export interface TestHarness {
  readonly url: string;
  readonly bus: Bus;
  readonly worker: Worker;
  functionOf(id: string): Implementation["handle"];
  stop(): Promise<void>;
}

const logger: Logger = createLogger({ level: "error", name: "test" });

export function connectAs(nats: StartedNats, worker: string): Promise<Bus> {
  const url = worker === "operator" ? nats.url : nats.urlFor(worker);
  return connectBus({ url, worker, instance: `${worker}-test`, logger: logger });
}

let instances = 0;

export async function startHarness(nats: StartedNats, env: Record<string, string> = {}): Promise<TestHarness> {
  const port = await freePort();
  const instance = `harness-test-${++instances}`;
  const bus = await connectBus({ url: nats.urlFor("harness"), worker: "harness", instance, logger: logger });
  const worker = await definition.build({
    bus,
    logger: logger,
    metrics: new Registry(),
    env: { FLOTILLA_PORT: String(port), ...env },
    clock: systemClock,
  });
  for (const part of worker.background) await part.start();
  return {
    url: `http://127.0.0.1:${port}`,
    bus,
    worker,
    functionOf(id) {
      const found = worker.functions.find((fn) => fn.contract.id === id);
      if (found === undefined) throw new Error(`the harness has no ${id}`);
      return found.handle;
    },
    async stop() {
      for (const part of worker.background) await part.stop();
      await bus.close();
    },
  };
}

/** Registers a worker that offers these functions, so that routing finds it; `serve` answers them. */
export async function offer(
  bus: Bus,
  functions: Readonly<Record<string, (body: never) => unknown>>,
): Promise<{ stop(): Promise<void> }> {
  const ids = Object.keys(functions);
  const subscription = bus.nc.subscribe(`fn.${bus.worker}.>`, {
    queue: bus.worker,
    callback: (error, message) => {
      if (error !== null) return;
      const id = message.subject.split(".").slice(2).join("::");
      const answer = functions[id]?.(message.json() as never) ?? null;
      message.respond(JSON.stringify(answer));
    },
  });
  await bus.nc.flush();
  const base = { replay: "safe", timeout_ms: 5_000, execution: "parallel", agent_visible: false } as const;
  const schemas = { request_schema: {}, response_schema: {}, description: "" };
  await bus.registry.register({
    worker: bus.worker,
    version: "1.0.0",
    priority: 0,
    functions: ids.map((id) => ({ id, ...base, ...schemas })),
    meta: {},
  });
  return {
    async stop() {
      subscription.unsubscribe();
      await bus.registry.leave();
    },
  };
}

/** Commits in order, each fenced by the one before, as an orchestrator would. */
export class Committer {
  readonly #bus: Bus;
  readonly #sessionId: string;
  #seq = 0;

  constructor(bus: Bus, sessionId: string) {
    this.#bus = bus;
    this.#sessionId = sessionId;
  }

  async commit(commit: Commit, kind: CommitKind = "run"): Promise<StoredCommit> {
    if (commit.session_id !== this.#sessionId) throw new Error("a commit of another session");
    const result = await this.#bus.journal.commit(kind, commit, { on: "commits", seq: this.#seq });
    if (result.kind !== "stored") throw new Error("the commit was refused");
    this.#seq = result.seq;
    return { seq: result.seq, kind, commit };
  }
}
