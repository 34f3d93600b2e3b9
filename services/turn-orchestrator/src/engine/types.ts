// What the steps of a turn share: the session's view, its open effects, and the means to act on the outside.
import type { Bus } from "@flotilla/bus";
import type { CallRecord, Model, SessionView, StoredInput } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { OrchestratorConfig } from "../config.ts";
import type { Draft } from "../domain/draft.ts";
import type { Asked } from "../domain/take-inputs.ts";
import type { EffectSpec } from "./effect-call.ts";
import type { Effects } from "./effects.ts";
import type { TurnMetrics } from "./metrics.ts";
import type { OutsidePorts } from "./ports.ts";

export interface EngineDeps {
  readonly bus: Bus;
  readonly config: OrchestratorConfig;
  readonly logger: Logger;
  readonly now: () => number;
  readonly random: () => number;
  readonly ports: OutsidePorts;
  readonly metrics: TurnMetrics;
}

/** What a step decided about its draft. */
export type Decision =
  /** Nothing to commit: go on when the bell rings or the time has passed. */
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "commit" }
  /** Commit as the commit after which the session waits (I6: refused when an input came meanwhile). */
  | { readonly kind: "idle" };

export interface StepContext {
  readonly deps: EngineDeps;
  readonly view: SessionView;
  readonly effects: Effects;
  readonly epoch: number;
  /** Whether intents found open at the start are a former owner's. */
  isResumed(key: string): boolean;
  /** When the failed call `key` may be tried again; the first answer is kept. */
  retryDue(key: string, due: () => number): number;
  bodyOf(seq: number): Promise<StoredInput>;
}

export type Step = (context: StepContext, draft: Draft, asked: Asked) => Promise<Decision>;

export type { CallRecord, EffectSpec, Model };
