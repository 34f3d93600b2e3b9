// A worker on the bus: its subscriptions, its registration, and how both end.
//
// S1 Registered only after every subscription is at the server, so that nobody is routed to a deaf worker.
// S2 `inst.<instance>` and cancels are answered until the very end: a draining instance is not a dead one.
import { manifestOf, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { Msg, Subscription } from "@nats-io/transport-node";
import { answerCall, type CallDeps, type ServedFunction } from "./answer-call.ts";
import { createCallMetrics } from "./call-metrics.ts";
import { discoveryDocument, discoverySubjects, FunctionStats, verbs } from "./discovery.ts";
import { Effects } from "./effects.ts";
import { InFlight } from "./execution.ts";
import { keepRegistered } from "./registration.ts";
import { systemClock } from "./system-clock.ts";
import type { Runtime, Worker } from "./types.ts";

export interface Served {
  /** Calls that run now. */
  readonly inFlight: number;
  /** Why calls do not arrive, or null. */
  problem(): string | null;
  /** Leaves the registry and takes no new calls. */
  leave(): Promise<void>;
  /** Waits for running calls, then aborts what is left and records it as failed. */
  finish(drainMs: number): Promise<void>;
  close(): void;
}

/** How long aborted handlers get to end by themselves. */
const abortGraceMs = 2_000;
const unsubscribeMs = 2_000;

export async function serve(worker: Worker, runtime: Runtime): Promise<Served> {
  const { bus, logger, clock } = runtime;
  const inFlight = new InFlight();
  const effects = new Effects({ bus, clock, logger, inFlight });
  const stats = new Map(worker.functions.map(({ contract }) => [contract.id, new FunctionStats()]));
  const subscriptions = new Subscriptions(runtime);
  subscribeFunctions(worker, runtime, { bus, clock, logger, inFlight, effects }, { subscriptions, stats });
  subscribeCancels(runtime, effects, subscriptions);
  subscribeDiscovery(worker, runtime, { subscriptions, stats });
  await bus.nc.flush();
  subscriptions.check();
  const registration = await keepRegistered(bus, logger, {
    worker: worker.name,
    version: worker.version,
    priority: worker.priority,
    functions: worker.functions.map(({ contract }) => manifestOf(contract)),
    meta: { outcomes: true },
  });
  return {
    get inFlight() {
      return inFlight.size;
    },
    problem: () => subscriptions.problem ?? registration.problem(),
    async leave() {
      await registration.leave();
      await subscriptions.drainFunctions();
    },
    finish: (drainMs) => finish({ inFlight, effects, logger }, drainMs),
    close: () => subscriptions.close(),
  };
}

interface Parts {
  readonly subscriptions: Subscriptions;
  readonly stats: ReadonlyMap<string, FunctionStats>;
}

function subscribeFunctions(worker: Worker, runtime: Runtime, deps: CallDeps, parts: Parts): void {
  const metrics = createCallMetrics(runtime.metrics, worker.name);
  for (const { contract, handle, prepare } of worker.functions) {
    const served: ServedFunction = {
      contract,
      handle,
      prepare,
      observed: {
        worker: worker.name,
        instance: runtime.bus.instance,
        functionId: contract.id,
        logger: runtime.logger,
        metrics: metrics.of(contract.id),
        stats: parts.stats.get(contract.id) ?? new FunctionStats(),
      },
    };
    parts.subscriptions.addFunction(subjects.call(worker.name, contract.id), worker.name, (message) => {
      answerCall(deps, served, message).catch((error: unknown) => {
        runtime.logger.error("a call could not be answered", { function: contract.id, error });
      });
    });
  }
}

/** Every instance hears every cancel; only the one that runs the key has it. */
function subscribeCancels(runtime: Runtime, effects: Effects, subscriptions: Subscriptions): void {
  const { bus, logger } = runtime;
  const prefix = subjects.cancel(bus.worker, "").length;
  subscriptions.add(subjects.cancelsOf(bus.worker), (message) => {
    const cancel = readCancel(message);
    if (cancel === null) logger.warn("a cancel could not be read", { subject: message.subject });
    else effects.cancel(message.subject.slice(prefix), cancel.reason, cancel.epoch);
  });
}

function readCancel(message: Msg): { reason: string; epoch: number } | null {
  try {
    const { reason, epoch } = message.json<{ reason?: unknown; epoch?: unknown }>();
    if (typeof epoch !== "number") return null;
    return { reason: typeof reason === "string" ? reason : "cancelled", epoch };
  } catch {
    return null;
  }
}

function subscribeDiscovery(worker: Worker, runtime: Runtime, parts: Parts): void {
  const { bus, clock } = runtime;
  const service = { worker, instance: bus.instance, startedAt: clock.now(), stats: parts.stats };
  parts.subscriptions.add(subjects.instance(bus.instance), (message) => {
    message.respond(JSON.stringify({ worker: worker.name, instance: bus.instance }));
  });
  for (const verb of verbs) {
    for (const subject of discoverySubjects(verb, worker.name, bus.instance)) {
      parts.subscriptions.add(subject, (message) => message.respond(JSON.stringify(discoveryDocument(verb, service))));
    }
  }
}

async function finish(parts: { inFlight: InFlight; effects: Effects; logger: Logger }, drainMs: number): Promise<void> {
  const { inFlight, effects, logger } = parts;
  const idle = inFlight.whenIdle();
  await Promise.race([idle, sleepAbortable(drainMs, idle)]);
  if (inFlight.size === 0) return;
  logger.warn("calls still run after the drain time; aborting them", { calls: inFlight.size });
  const error = new FlotillaError("SHUTTING_DOWN", "the worker shut down while the call ran; it may have taken effect");
  inFlight.abortAll(error);
  await Promise.race([idle, sleepAbortable(abortGraceMs, idle)]);
  await effects.writeOffAll(error);
  for (const execution of inFlight.executions) execution.giveUp(error);
  await inFlight.whenAnswered();
}

/** Resolves after `ms`, or with `other`; leaves no timer behind. */
async function sleepAbortable(ms: number, other: Promise<unknown>): Promise<void> {
  const stop = new AbortController();
  const wake = (): void => stop.abort();
  other.then(wake, wake);
  await systemClock.sleep(ms, stop.signal);
}

/** The subscriptions of one worker. A refused one of a function is a reason not to be ready. */
class Subscriptions {
  readonly #runtime: Runtime;
  readonly #functions: Subscription[] = [];
  readonly #others: Subscription[] = [];
  problem: string | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  addFunction(subject: string, queue: string, handle: (message: Msg) => void): void {
    this.#functions.push(this.#subscribe(subject, handle, queue));
  }

  add(subject: string, handle: (message: Msg) => void): void {
    this.#others.push(this.#subscribe(subject, handle));
  }

  /** Throws when the server has refused a subscription. */
  check(): void {
    if (this.problem !== null) throw new FlotillaError("BUS_PERMISSION", this.problem);
  }

  async drainFunctions(): Promise<void> {
    const drained = Promise.allSettled(this.#functions.map((subscription) => subscription.drain()));
    await Promise.race([drained, sleepAbortable(unsubscribeMs, drained)]);
  }

  close(): void {
    for (const subscription of [...this.#functions, ...this.#others]) subscription.unsubscribe();
  }

  #subscribe(subject: string, handle: (message: Msg) => void, queue?: string): Subscription {
    const { bus, logger } = this.#runtime;
    return bus.nc.subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        if (error !== null) {
          this.problem = `the bus user may not subscribe ${subject}`;
          logger.error("a subscription was refused", { subject, error });
          return;
        }
        try {
          handle(message);
        } catch (thrown) {
          logger.error("a message could not be handled", { subject, error: thrown });
        }
      },
    });
  }
}
