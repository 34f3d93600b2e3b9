// The open effectful calls of one session, by key: each runs at most once in this process, its result waits to be taken.
import type { Bus } from "@flotilla/bus";
import { ensureFlotillaError, FlotillaError } from "@flotilla/errors";
import {
  cancelEffect,
  type EffectDeps,
  type EffectResult,
  type EffectSpec,
  untilSettled,
  writeOff,
} from "./effect-call.ts";
import { runAnyEffect } from "./foreign-effect.ts";
import type { Wake } from "./wake.ts";

const stopped = new FlotillaError("CANCELLED", "the call is no longer waited for");

interface OpenEffect {
  readonly spec: EffectSpec;
  readonly ended: Promise<void>;
  readonly stop: AbortController;
  result: EffectResult | null;
  fault: FlotillaError | null;
}

export class Effects {
  readonly #open = new Map<string, OpenEffect>();
  readonly #deps: EffectDeps;
  readonly #wake: Wake;

  constructor(bus: Bus, now: () => number, wake: Wake) {
    this.#deps = { bus, now };
    this.#wake = wake;
  }

  /** Starts the call unless this process runs it already. `isResumed`: a former owner may have sent it. */
  ensure(spec: EffectSpec, isResumed: boolean): void {
    if (this.#open.has(spec.key)) return;
    const effect: { -readonly [K in keyof OpenEffect]: OpenEffect[K] } = {
      spec,
      result: null,
      fault: null,
      ended: Promise.resolve(),
      stop: new AbortController(),
    };
    effect.ended = runAnyEffect(this.#deps, spec, isResumed, effect.stop.signal).then(
      (result) => {
        effect.result = result;
        this.#wake.ring();
      },
      (error: unknown) => {
        effect.fault = ensureFlotillaError(error);
        this.#wake.ring();
      },
    );
    this.#open.set(spec.key, effect);
  }

  has(key: string): boolean {
    return this.#open.has(key);
  }

  /** The result of a call that has ended, or null. Throws when its running itself failed (a lost ownership, say). */
  result(key: string): EffectResult | null {
    const effect = this.#open.get(key);
    if (effect?.fault != null) throw effect.fault;
    return effect?.result ?? null;
  }

  forget(key: string): void {
    this.#open.delete(key);
  }

  /** Cancels the calls and gives them `graceMs`; whatever has not ended then is written off. What nobody has sent stays unsent. */
  async cancel(specs: readonly EffectSpec[], reason: string, graceMs: number): Promise<Map<string, EffectResult>> {
    const results = await Promise.all(
      specs.map(async (spec) => [spec.key, await this.#cancelOne(spec, reason, graceMs)] as const),
    );
    return new Map(results);
  }

  async #cancelOne(spec: EffectSpec, reason: string, graceMs: number): Promise<EffectResult> {
    const effect = this.#open.get(spec.key);
    if (effect?.result != null) return effect.result;
    if (effect === undefined) {
      // Only a former owner can have sent it, and the record tells whether that one has.
      const found = await writeOff(this.#deps, spec, reason);
      if (found.kind !== "in_flight") return found;
    }
    cancelEffect(this.#deps.bus, spec.worker, spec.key, reason, spec.epoch);
    if (effect === undefined) await untilSettled(this.#deps, spec, graceMs);
    else await within(effect.ended, graceMs);
    effect?.stop.abort(stopped);
    return effect?.result ?? writeOff(this.#deps, spec, reason);
  }

  /** Stops waiting for everything; the executions themselves go on and are attached to by the next owner. */
  release(): void {
    for (const { stop } of this.#open.values()) stop.abort(stopped);
    this.#open.clear();
  }
}

async function within(ended: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([ended, late]);
  clearTimeout(timer);
}
