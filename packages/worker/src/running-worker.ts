// The life of one worker in a process: connect, build, start, serve; later leave, drain, stop.
//
// L1 The state is one union; what a state needs lives inside it.
// L2 Stopping happens once, in a fixed order, and does not depend on the bus being there.
import { type Bus, connectBus } from "@flotilla/bus";
import { randomId } from "@flotilla/contracts";
import { FlotillaError, isFlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { Registry as MetricsRegistry } from "prom-client";
import { type Served, serve } from "./serve.ts";
import { systemClock } from "./system-clock.ts";
import type { Background, Clock, Runtime, Worker, WorkerDefinition } from "./types.ts";
import { loginOf, type WorkerEnv } from "./worker-env.ts";

export interface WorkerSetup {
  readonly definition: WorkerDefinition;
  readonly shared: WorkerEnv;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  readonly clock: Clock;
  /** The worker cannot go on: its bus connection is closed for good. */
  readonly onFatal: (error: unknown) => void;
}

type Lifecycle =
  | { readonly kind: "starting" }
  | { readonly kind: "ready"; readonly bus: Bus; readonly worker: Worker; readonly served: Served }
  | { readonly kind: "draining"; readonly bus: Bus }
  | { readonly kind: "stopped" };

export interface WorkerHealth {
  readonly worker: string;
  readonly instance: string;
  readonly state: Lifecycle["kind"];
  readonly ready: boolean;
  /** Why it is not ready. */
  readonly reason?: string;
  /** What does not work although it is ready. */
  readonly degraded?: string[];
  readonly in_flight: number;
  readonly round_trip_ms?: number;
}

const readinessMs = 2_000;
const degradedPrefix = "degraded:";

export class RunningWorker {
  readonly name: string;
  /** Fresh for every start, so that a successor never looks like its dead predecessor. */
  readonly instance: string;
  readonly #setup: WorkerSetup;
  readonly #logger: Logger;
  #state: Lifecycle = { kind: "starting" };
  #isStopping = false;
  #startup: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  readonly #started: Background[] = [];

  constructor(setup: WorkerSetup) {
    this.#setup = setup;
    this.name = setup.definition.name;
    this.instance = `${this.name.slice(0, 40)}-${setup.shared.FLOTILLA_INSTANCE}-${randomId().slice(0, 12)}`;
    this.#logger = setup.logger.with({ worker: this.name, instance: this.instance });
  }

  get state(): Lifecycle["kind"] {
    return this.#state.kind;
  }

  /** The worker's bus while it is ready. */
  get bus(): Bus | undefined {
    return this.#state.kind === "ready" ? this.#state.bus : undefined;
  }

  /** Longest time that running calls get when the worker stops. */
  get drainMs(): number {
    const seconds = this.#state.kind === "ready" ? this.#state.worker.drainSeconds : 0;
    return (this.#setup.shared.DRAIN_SECONDS ?? seconds) * 1_000;
  }

  async start(): Promise<void> {
    const bus = await this.#connect();
    if (this.#isStopping) return bus.close();
    this.#startup = this.#startOn(bus);
    await this.#startup;
  }

  /** Idempotent. A worker that still starts is torn down once it has started; one that still connects is let go. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#stopped ??= Promise.allSettled([this.#startup]).then(() => this.#tearDown());
    await this.#stopped;
  }

  async #startOn(bus: Bus): Promise<void> {
    const { definition, env, metrics, clock } = this.#setup;
    const runtime: Runtime = { bus, logger: this.#logger, metrics, env, clock };
    try {
      const worker = await definition.build(runtime);
      if (worker.name !== this.name)
        throw new TypeError(`definition ${this.name} builds a worker named ${worker.name}`);
      await this.#startBackground(worker);
      const served = await serve(worker, runtime);
      this.#state = { kind: "ready", bus, worker, served };
      this.#watch(bus);
      this.#logger.info("the worker is ready", { functions: worker.functions.length });
    } catch (error) {
      await this.#stopBackground();
      await closeWithin(bus, this.#logger);
      this.#state = { kind: "stopped" };
      throw error;
    }
  }

  async health(): Promise<WorkerHealth> {
    const base = { worker: this.name, instance: this.instance, state: this.#state.kind };
    if (this.#state.kind !== "ready") {
      return { ...base, ready: false, reason: `the worker is ${this.#state.kind}`, in_flight: 0 };
    }
    const { bus, served, worker } = this.#state;
    const reasons = worker.background.map((part) => part.readiness?.() ?? null).filter((reason) => reason !== null);
    const degraded = reasons.filter((reason) => reason.startsWith(degradedPrefix));
    const round = await roundTrip(bus);
    const reason = round.problem ?? served.problem() ?? reasons.find((text) => !text.startsWith(degradedPrefix));
    return {
      ...base,
      ready: reason === undefined,
      ...(reason === undefined ? {} : { reason }),
      ...(degraded.length === 0 ? {} : { degraded: degraded.map((text) => text.slice(degradedPrefix.length).trim()) }),
      in_flight: served.inFlight,
      ...(round.ms === undefined ? {} : { round_trip_ms: Math.round(round.ms * 1_000) / 1_000 }),
    };
  }

  #connect(): Promise<Bus> {
    const { shared } = this.#setup;
    return connectBus({
      url: shared.NATS_URL,
      ...loginOf(this.name, shared),
      worker: this.name,
      instance: this.instance,
      logger: this.#logger,
      connectTimeoutMs: shared.NATS_CONNECT_TIMEOUT_MS,
      shards: shared.TURN_SHARDS,
      grants: shared.FLOTILLA_GRANTS,
    });
  }

  async #startBackground(worker: Worker): Promise<void> {
    for (const part of worker.background) {
      await part.start();
      this.#started.push(part);
    }
  }

  async #stopBackground(): Promise<void> {
    for (const part of this.#started.splice(0).reverse()) {
      try {
        await part.stop();
      } catch (error) {
        this.#logger.error("a background part could not be stopped", { part: part.name, error });
      }
    }
  }

  #watch(bus: Bus): void {
    const onClosed = (cause: unknown): void => {
      if (this.#state.kind !== "ready") return;
      this.#setup.onFatal(new FlotillaError("BUS_UNAVAILABLE", "the bus connection was closed for good", { cause }));
    };
    bus.nc.closed().then(onClosed, onClosed);
  }

  async #tearDown(): Promise<void> {
    if (this.#state.kind !== "ready") return;
    const { bus, served } = this.#state;
    const { drainMs } = this;
    this.#state = { kind: "draining", bus };
    this.#logger.info("the worker is stopping", { calls: served.inFlight, drain_ms: drainMs });
    await served.leave();
    await this.#stopBackground();
    await served.finish(drainMs);
    served.close();
    await closeWithin(bus, this.#logger);
    this.#state = { kind: "stopped" };
  }
}

async function roundTrip(bus: Bus): Promise<{ ms?: number; problem?: string }> {
  if (!bus.connected) return { problem: "the bus connection is down" };
  try {
    return { ms: await bus.ping(readinessMs) };
  } catch (error) {
    return { problem: isFlotillaError(error) ? error.message : "the bus did not answer" };
  }
}

const closeMs = 2_000;

/** A drain needs the server; without one, what could be sent was sent. */
async function closeWithin(bus: Bus, logger: Logger): Promise<void> {
  const closed = bus.close().then(
    () => true,
    (error: unknown) => {
      logger.warn("the bus connection did not close cleanly", { error });
      return true;
    },
  );
  if (await Promise.race([closed, systemClock.sleep(closeMs)])) return;
  logger.warn("the bus connection did not drain in time");
  await bus.nc.close();
}
