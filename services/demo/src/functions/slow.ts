// demo::slow
import { demoSlow } from "@flotilla/contracts";
import { implement } from "@flotilla/worker";
import type { ReportProgress } from "../adapters/progress.ts";
import { msOf } from "../domain/arguments.ts";
import { type EffectDeps, performEffect } from "./perform-effect.ts";

export interface SlowDeps extends EffectDeps {
  readonly reportProgress: ReportProgress;
}

const defaultMs = 1_000;
const mostReports = 20;
const shortestStepMs = 100;

export function makeSlow(deps: SlowDeps) {
  return implement(demoSlow, (context, args) =>
    performEffect(deps, context, args, async () => {
      const ms = msOf(args.ms, defaultMs);
      const stepMs = Math.max(shortestStepMs, ms / mostReports);
      const startedAt = deps.clock.now();
      for (let doneMs = 0; doneMs < ms; doneMs = deps.clock.now() - startedAt) {
        if (doneMs > 0) deps.reportProgress(context, doneMs, ms);
        await deps.clock.sleep(Math.min(stepMs, ms - doneMs), context.signal);
        context.signal.throwIfAborted();
      }
      deps.reportProgress(context, ms, ms);
      return { slept: ms };
    }),
  );
}
