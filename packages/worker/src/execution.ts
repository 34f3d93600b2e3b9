// One run of a handler, and the set of all that run: who may stop one, and when all have ended.
import { ensureFlotillaError, FlotillaError, isFlotillaError } from "@flotilla/errors";

export class Execution {
  readonly #controller = new AbortController();
  readonly #end = Promise.withResolvers<unknown>();
  /** Epoch ms; the latest of all requests that wait for this run. */
  deadline: number;
  /** Epoch of the newest owner that asked for this run. */
  epoch: number;
  /** The newest reason to stop; the signal keeps the first. */
  stopReason: FlotillaError | undefined;

  constructor(deadline: number, epoch: number) {
    this.deadline = deadline;
    this.epoch = epoch;
    // Whoever waits sees the rejection; nobody may be waiting any more.
    this.#end.promise.catch(() => {});
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** How the run ended. */
  get result(): Promise<unknown> {
    return this.#end.promise;
  }

  abort(reason: FlotillaError): void {
    this.stopReason = reason;
    this.#controller.abort(reason);
  }

  /** A request's time is up; the run is only stopped when no other request may wait longer. */
  expire(deadline: number, reason: FlotillaError): void {
    if (deadline >= this.deadline) this.abort(reason);
  }

  follow(work: Promise<unknown>): void {
    work.then(this.#end.resolve, this.#end.reject);
  }

  /** Ends the run for everyone who waits, whatever its handler still does. */
  giveUp(reason: FlotillaError): void {
    this.#end.reject(reason);
  }
}

/** An error thrown because of an abort counts as the reason of the abort. */
export function errorOf(thrown: unknown, signal: AbortSignal): FlotillaError {
  const byAbort = signal.aborted && (!isFlotillaError(thrown) || thrown.disposition === "cancelled");
  return ensureFlotillaError(byAbort ? signal.reason : thrown);
}

/** The answer of a run, or TIMEOUT at the deadline of this request. */
export function resultWithin(execution: Execution, deadline: number, now: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        const error = new FlotillaError("TIMEOUT", "the call did not end before its deadline");
        execution.expire(deadline, error);
        reject(error);
      },
      Math.max(0, deadline - now),
    );
    execution.result.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** Everything in flight at one worker: requests that are being answered, and runs that outlive their requests. */
export class InFlight {
  readonly #executions = new Set<Execution>();
  #requests = 0;
  readonly #waiting = new Set<{ isOver: () => boolean; resolve: () => void }>();

  get size(): number {
    return Math.max(this.#requests, this.#executions.size);
  }

  get executions(): Iterable<Execution> {
    return this.#executions;
  }

  beginRequest(): void {
    this.#requests += 1;
  }

  endRequest(): void {
    this.#requests -= 1;
    this.#announce();
  }

  begin(execution: Execution): void {
    this.#executions.add(execution);
  }

  end(execution: Execution): void {
    this.#executions.delete(execution);
    this.#announce();
  }

  abortAll(reason: FlotillaError): void {
    for (const execution of [...this.#executions]) execution.abort(reason);
  }

  whenIdle(): Promise<void> {
    return this.#when(() => this.size === 0);
  }

  /** Every request has its reply; handlers may still run. */
  whenAnswered(): Promise<void> {
    return this.#when(() => this.#requests === 0);
  }

  #when(isOver: () => boolean): Promise<void> {
    if (isOver()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.add({ isOver, resolve }));
  }

  #announce(): void {
    for (const entry of [...this.#waiting]) {
      if (!entry.isOver()) continue;
      this.#waiting.delete(entry);
      entry.resolve();
    }
  }
}
