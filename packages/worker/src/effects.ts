// Effects of one worker instance by idempotency key: each key runs once, everybody else attaches (I4).
//
// E1 running (acknowledged) -> handler -> done/failed (acknowledged) -> reply.
// E2 In this process a key has at most one execution; a request for it joins, or is refused when its epoch is older.
// E3 An execution ends with its handler, not with its requests.
import type { Bus, OutcomeRecord } from "@flotilla/bus";
import { ensureFlotillaError, FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import { claimEffect, KeyedExecution, staleEpoch } from "./effect-claim.ts";
import { answerOf, settleRecord } from "./effect-record.ts";
import { type Execution, errorOf, type InFlight } from "./execution.ts";
import type { Clock } from "./types.ts";

export interface EffectRequest {
  readonly key: string;
  readonly epoch: number;
  /** Epoch ms. */
  readonly deadline: number;
  readonly reclaim: number | undefined;
}

export interface EffectsDeps {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly inFlight: InFlight;
}

/** What a key stands for. */
interface Work {
  /** Begins beside the claim; changes nothing. */
  readonly prepare?: (execution: Execution) => void;
  readonly handle: (execution: Execution) => Promise<unknown>;
}

/** An execution whose handler has started: what is needed to write its outcome. */
interface Started {
  readonly execution: KeyedExecution;
  readonly revision: number;
  readonly at: number;
}

export class Effects {
  readonly #deps: EffectsDeps;
  readonly #executions = new Map<string, KeyedExecution>();
  readonly #started = new Map<KeyedExecution, Started>();

  constructor(deps: EffectsDeps) {
    this.#deps = deps;
  }

  /** The execution of this key: the one that runs here already, or a new one. */
  join(request: EffectRequest, work: Work): KeyedExecution {
    const running = this.#executions.get(request.key);
    if (running === undefined) return this.#begin(request, work);
    if (running.epoch > request.epoch) throw staleEpoch();
    running.epoch = request.epoch;
    running.deadline = Math.max(running.deadline, request.deadline);
    if (request.reclaim !== undefined) running.reclaim = request.reclaim;
    return running;
  }

  /** Aborts the handler's signal, unless a newer owner than the canceller has asked for the run. */
  cancel(key: string, reason: string, epoch: number): void {
    const execution = this.#executions.get(key);
    if (execution === undefined || execution.epoch > epoch) return;
    execution.abort(new FlotillaError("CANCELLED", reason));
  }

  /** Shutdown: handlers that did not end in time are recorded as failed; what they still do is nobody's any more. */
  async writeOffAll(error: FlotillaError): Promise<void> {
    await Promise.all([...this.#started.values()].map((entry) => this.#writeOff(entry, error)));
  }

  async #writeOff(entry: Started, error: FlotillaError): Promise<void> {
    this.#started.delete(entry.execution);
    try {
      await this.#record(entry, failed(this.#deps, entry, error));
      entry.execution.giveUp(error);
    } catch (cause) {
      entry.execution.giveUp(ensureFlotillaError(cause));
    } finally {
      this.#end(entry.execution);
    }
  }

  #begin(request: EffectRequest, work: Work): KeyedExecution {
    const execution = new KeyedExecution(request.key, request.deadline, request.epoch);
    execution.reclaim = request.reclaim;
    this.#executions.set(request.key, execution);
    this.#deps.inFlight.begin(execution);
    execution.follow(this.#perform(execution, work).finally(() => this.#end(execution)));
    return execution;
  }

  #end(execution: KeyedExecution): void {
    if (this.#executions.get(execution.key) === execution) this.#executions.delete(execution.key);
    this.#deps.inFlight.end(execution);
  }

  async #perform(execution: KeyedExecution, work: Work): Promise<unknown> {
    const { bus, clock } = this.#deps;
    const at = clock.now();
    const claiming = claimEffect(bus, execution, { status: "running", ...this.#owner(execution), at });
    work.prepare?.(execution);
    const claim = await claiming;
    if (claim.kind === "settled") return answerOf(bus, claim.record);
    const started: Started = { execution, revision: claim.revision, at };
    if (execution.stopReason !== undefined) return this.#neverStarted(started, execution.stopReason);
    this.#started.set(execution, started);
    return this.#runAndRecord(started, work.handle);
  }

  /** Stopped between the claim and the handler: the record says that the effect has not started and never will. */
  async #neverStarted(started: Started, reason: FlotillaError): Promise<never> {
    const { bus, clock } = this.#deps;
    const { epoch } = started.execution;
    await this.#record(started, { status: "cancelled", by: bus.instance, epoch, at: clock.now() });
    throw reason;
  }

  async #runAndRecord(started: Started, handle: Work["handle"]): Promise<unknown> {
    const { execution } = started;
    let value: unknown;
    let bytes = 0;
    let error: FlotillaError | undefined;
    try {
      value = (await handle(execution)) ?? null;
      bytes = jsonBytes(value);
    } catch (thrown) {
      error = errorOf(thrown, execution.signal);
    }
    // Written off meanwhile: the record is settled and everyone who waited has been answered.
    if (!this.#started.delete(execution)) return value;
    const record = error === undefined ? this.#done(started, value) : failed(this.#deps, started, error);
    await this.#record(started, record, bytes);
    if (error !== undefined) throw error;
    return value;
  }

  async #record(started: Started, record: OutcomeRecord, bytes = 0): Promise<void> {
    const { key } = started.execution;
    const settlement = await settleRecord(this.#deps, key, record, started.revision, bytes);
    if (settlement === "recorded") return;
    this.#deps.logger.warn("the outcome record was changed by somebody else", { key, settlement });
    if (settlement === "replaced") throw staleEpoch();
  }

  #owner(execution: KeyedExecution): { worker: string; instance: string; epoch: number } {
    const { worker, instance } = this.#deps.bus;
    return { worker, instance, epoch: execution.epoch };
  }

  #done(started: Started, result: unknown): OutcomeRecord {
    const owner = this.#owner(started.execution);
    return { status: "done", ...owner, result, at: this.#deps.clock.now(), started_at: started.at };
  }
}

function failed(deps: EffectsDeps, started: Started, error: FlotillaError): OutcomeRecord {
  const { worker, instance } = deps.bus;
  const owner = { worker, instance, epoch: started.execution.epoch };
  return { status: "failed", ...owner, error: error.toBody(), at: deps.clock.now(), started_at: started.at };
}

/** Throws when the value is no JSON: a defect of the handler, found before it is recorded. */
function jsonBytes(value: unknown): number {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError("the handler's result is not JSON");
  return Buffer.byteLength(text);
}
