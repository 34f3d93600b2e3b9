// The open effectful calls of one session, by key: each runs at most once in this process, its result waits to be taken.
import type { Bus } from "@flotilla/bus";
import { ensureFlotillaError, type FlotillaError } from "@flotilla/errors";
import { cancelEffect, type EffectDeps, type EffectResult, type EffectSpec, writeOff } from "./effect-call.ts";
import { runAnyEffect } from "./foreign-effect.ts";
import type { Wake } from "./wake.ts";

interface OpenEffect {
  readonly spec: EffectSpec;
  readonly ended: Promise<void>;
  result: EffectResult | null;
  fault: FlotillaError | null;
}

export class Effects {
  readonly #open = new Map<string, OpenEffect>();
  readonly #deps: EffectDeps;
  readonly #wake: Wake;
  readonly #stop = new AbortController();

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
    };
    effect.ended = runAnyEffect(this.#deps, spec, isResumed, this.#stop.signal).then(
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

  /** Cancels the calls and gives them `graceMs`; whatever has not ended then is written off. */
  async cancel(specs: readonly EffectSpec[], reason: string, graceMs: number): Promise<Map<string, EffectResult>> {
    for (const spec of specs) this.ensure(spec, true);
    const open = specs.flatMap((spec) => this.#open.get(spec.key) ?? []);
    for (const effect of open) {
      if (effect.result === null)
        cancelEffect(this.#deps.bus, effect.spec.worker, effect.spec.key, reason, effect.spec.epoch);
    }
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.race([Promise.all(open.map((effect) => effect.ended)), grace]);
    clearTimeout(timer);
    const results = await Promise.all(
      open.map(
        async (effect) =>
          [effect.spec.key, effect.result ?? (await writeOff(this.#deps, effect.spec, reason))] as const,
      ),
    );
    for (const spec of specs) this.forget(spec.key);
    return new Map(results);
  }

  /** Stops waiting for everything; the executions themselves go on and are attached to by the next owner. */
  release(): void {
    this.#stop.abort();
    this.#open.clear();
  }
}
