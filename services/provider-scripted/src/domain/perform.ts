// Plays the steps of a block in order until it ends, fails or is cancelled.
import { setImmediate } from "node:timers/promises";
import type { ErrorKind } from "@flotilla/contracts";
import type { AnswerBuilder } from "./answer-builder.ts";
import { piecesOf } from "./pieces.ts";
import type { Step } from "./script.ts";

export interface PerformDeps {
  readonly answer: AnswerBuilder;
  readonly signal: AbortSignal;
  /** Contract: resolves at once when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Which attempt of this block this is, from 1, over all processes. */
  readonly ordinal: () => Promise<number>;
  /** Pause between the words of a text; 0 = none. */
  readonly wordMs: number;
}

export type Ending =
  | { readonly kind: "end" }
  | { readonly kind: "aborted" }
  | { readonly kind: "failed"; readonly errorKind: ErrorKind; readonly message: string };

/** A cancel is noticed this often while words go out without a pause. */
const yieldEvery = 64;

export async function perform(steps: readonly Step[], deps: PerformDeps): Promise<Ending> {
  for (const [index, step] of steps.entries()) {
    if (deps.signal.aborted) return { kind: "aborted" };
    const isAfterTokens = steps[index - 1]?.kind === "tokens";
    const failure = await performStep(step, isAfterTokens, deps);
    if (failure !== null) return failure;
  }
  return deps.signal.aborted ? { kind: "aborted" } : { kind: "end" };
}

async function performStep(step: Step, isAfterTokens: boolean, deps: PerformDeps): Promise<Ending | null> {
  switch (step.kind) {
    case "say":
      if (isAfterTokens && deps.answer.endsInWord && step.text !== "") deps.answer.append("text", " ");
      await stream("text", piecesOf(step.text), deps.wordMs, deps);
      return null;
    case "think":
      await stream("thinking", piecesOf(step.text), deps.wordMs, deps);
      return null;
    case "call":
      deps.answer.call(step.functionId, step.args);
      return null;
    case "delay":
      await deps.sleep(step.ms, deps.signal);
      return null;
    case "tokens":
      await stream("text", numbers(step.count, deps.answer.endsInWord), step.ms, deps);
      return null;
    case "error":
      return { kind: "failed", errorKind: step.errorKind, message: step.message };
    case "cut":
      return { kind: "failed", errorKind: "transient", message: "the stream ended without a terminal signal" };
    case "fail-first":
      return failFirst(step, await deps.ordinal());
    case "usage":
      return null;
    default:
      return step satisfies never;
  }
}

function failFirst(step: Extract<Step, { kind: "fail-first" }>, ordinal: number): Ending | null {
  if (ordinal > step.count) return null;
  return { kind: "failed", errorKind: step.errorKind, message: `scripted failure ${ordinal} of ${step.count}` };
}

async function stream(
  kind: "text" | "thinking",
  pieces: Iterable<string>,
  pauseMs: number,
  { answer, signal, sleep }: PerformDeps,
): Promise<void> {
  let count = 0;
  for (const piece of pieces) {
    if (count > 0 && pauseMs > 0) await sleep(pauseMs, signal);
    else if (count % yieldEvery === yieldEvery - 1) await setImmediate();
    if (signal.aborted) return;
    answer.append(kind, piece);
    count += 1;
  }
}

function* numbers(count: number, isAfterWord: boolean): Generator<string> {
  for (let number = 1; number <= count; number++) yield number === 1 && !isAfterWord ? "1" : ` ${number}`;
}
