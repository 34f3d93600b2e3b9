// The HandlerContext of one call: ids of the request, its signal and deadline, and calls onwards.
import type { Bus, CallOptions } from "@flotilla/bus";
import type { FunctionContract } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { z } from "zod";
import type { Execution } from "./execution.ts";
import type { Invocation } from "./invocation.ts";
import type { Clock, HandlerContext } from "./types.ts";

export interface ContextDeps {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class CallContext implements HandlerContext {
  readonly functionId: string;
  readonly #deps: ContextDeps;
  readonly #invocation: Invocation;
  readonly #execution: Execution;
  #logger: Logger | undefined;

  constructor(deps: ContextDeps, functionId: string, invocation: Invocation, execution: Execution) {
    this.functionId = functionId;
    this.#deps = deps;
    this.#invocation = invocation;
    this.#execution = execution;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }
  get deadline(): number {
    return this.#execution.deadline;
  }
  get epoch(): number {
    return this.#execution.epoch;
  }
  get caller(): string {
    return this.#invocation.caller;
  }
  get workspace(): string {
    return this.#invocation.workspace;
  }
  get attempt(): number {
    return this.#invocation.attempt;
  }
  get idempotencyKey(): string | undefined {
    return this.#invocation.idempotencyKey;
  }
  get sessionId(): string | undefined {
    return this.#invocation.ids.sessionId;
  }
  get messageId(): string | undefined {
    return this.#invocation.ids.messageId;
  }
  get turnId(): string | undefined {
    return this.#invocation.ids.turnId;
  }
  get callId(): string | undefined {
    return this.#invocation.ids.callId;
  }

  /** Made on first use: most calls log nothing of their own. */
  get logger(): Logger {
    this.#logger ??= this.#deps.logger.with({
      function: this.functionId,
      session_id: this.sessionId,
      message_id: this.messageId,
    });
    return this.#logger;
  }

  async call<I extends z.ZodType, O extends z.ZodType>(
    contract: FunctionContract<I, O>,
    payload: z.input<I>,
    options: CallOptions = {},
  ): Promise<z.output<O>> {
    const left = this.deadline - this.#deps.clock.now();
    if (left <= 0) throw new FlotillaError("TIMEOUT", "no time is left for another call");
    const { ids, workspace } = this.#invocation;
    return this.#deps.bus.call(contract, payload, {
      workspace,
      sessionId: ids.sessionId,
      messageId: ids.messageId,
      turnId: ids.turnId,
      callId: ids.callId,
      ...options,
      timeoutMs: Math.min(options.timeoutMs ?? contract.timeoutMs, left),
      signal: options.signal === undefined ? this.signal : AbortSignal.any([this.signal, options.signal]),
    });
  }
}
