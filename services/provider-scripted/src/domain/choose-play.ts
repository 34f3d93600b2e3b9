// What a model call plays: the block of the newest script, the demo's own answer, or the reason why nothing can be played. Pure.
import { sha256Hex, textOf } from "@flotilla/contracts";
import type { ModelRequest } from "@flotilla/provider-kit";
import { demoSteps } from "./demo-model.ts";
import { isScript, parseScript, type Step } from "./script.ts";

export type PlayMessage = ModelRequest["messages"][number];

export interface Play {
  /** Names the script within its session: attempts of one block are counted under it. */
  readonly script: string;
  /** Number of the block, from 0. */
  readonly block: number;
  readonly steps: readonly Step[];
  /** Words come at the pace of a person reading. */
  readonly isPaced: boolean;
  /** Why nothing can be played. */
  readonly problem: string | null;
}

const models = ["play", "demo"] as const;
const pastTheLast: readonly Step[] = [{ kind: "say", text: "done" }];
/** `demo` stands behind `play` in a fallback chain, so it leaves out what makes a call fail. */
const failures: ReadonlySet<Step["kind"]> = new Set(["error", "cut", "fail-first"]);
const answers: ReadonlySet<Step["kind"]> = new Set(["say", "tokens", "call"]);

export function choosePlay(model: string, messages: readonly PlayMessage[]): Play {
  if (model === "play") return playScript(messages);
  if (model === "demo") return playDemo(messages);
  const problem = `the scripted provider has the models ${models.join(" and ")}, not ${model}`;
  return { ...at(messages, messages.length), steps: [], isPaced: false, problem };
}

function playScript(messages: readonly PlayMessage[]): Play {
  const index = messages.findLastIndex((message) => message.role === "user" && isScript(textOf(message)));
  const message = messages[index];
  if (message === undefined) return ownAnswer(messages);
  const place = at(messages, index);
  const script = parseScript(textOf(message));
  if (!script.ok) return { ...place, steps: [], isPaced: false, problem: script.problem };
  return { ...place, steps: script.blocks[place.block] ?? pastTheLast, isPaced: false, problem: null };
}

/** A script in the newest user message counts when it is a valid one whose block answers something; else it is talk. */
function playDemo(messages: readonly PlayMessage[]): Play {
  const index = messages.findLastIndex((message) => message.role === "user");
  const message = messages[index];
  if (message === undefined || !isScript(textOf(message))) return ownAnswer(messages);
  const script = parseScript(textOf(message));
  if (!script.ok) return ownAnswer(messages);
  const place = at(messages, index);
  const steps = (script.blocks[place.block] ?? pastTheLast).filter((step) => !failures.has(step.kind));
  if (!steps.some((step) => answers.has(step.kind))) return ownAnswer(messages);
  return { ...place, steps, isPaced: false, problem: null };
}

function ownAnswer(messages: readonly PlayMessage[]): Play {
  const index = messages.findLastIndex((message) => message.role === "user");
  return { ...at(messages, index), steps: demoSteps(messages.slice(Math.max(0, index))), isPaced: true, problem: null };
}

/** The script that stands at `index`, and the block that comes next: failed answers do not count. */
function at(messages: readonly PlayMessage[], index: number): Pick<Play, "script" | "block"> {
  const message = messages[index];
  const text = message === undefined ? "" : textOf(message);
  const answered = messages.slice(index + 1).filter((m) => m.role === "assistant" && m.stop_reason !== "error");
  const script = sha256Hex(JSON.stringify([index, message?.timestamp ?? 0, text])).slice(0, 16);
  return { script, block: answered.length };
}
