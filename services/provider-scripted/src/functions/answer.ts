// provider::scripted::stream and provider::scripted::complete
import { providerComplete, providerStream, randomId } from "@flotilla/contracts";
import { createFrameEmitter, createToolNames, type FrameBus, type ModelRequest } from "@flotilla/provider-kit";
import { noteModelCall } from "@flotilla/telemetry";
import { type Clock, type HandlerContext, type Implementation, implement } from "@flotilla/worker";
import type { CallLog, CallRecord } from "../adapters/call-log.ts";
import { AnswerBuilder } from "../domain/answer-builder.ts";
import { choosePlay, type Play } from "../domain/choose-play.ts";
import { finalMessage } from "../domain/final-message.ts";
import { type Ending, perform } from "../domain/perform.ts";

export interface AnswerDeps {
  readonly bus: FrameBus;
  readonly log: CallLog;
  readonly clock: Clock;
  /** Pause between two words of the demo's own answers. */
  readonly wordMs: number;
}

export function makeAnswers(deps: AnswerDeps): Implementation[] {
  return [
    implement(providerStream("scripted"), (context, request) => answer(deps, context, request, true)),
    implement(providerComplete("scripted"), (context, request) => answer(deps, context, request, false)),
  ];
}

async function answer(deps: AnswerDeps, context: HandlerContext, request: ModelRequest, streams: boolean) {
  const sessionId = request.session_id ?? context.sessionId;
  const play = choosePlay(request.model, request.messages);
  const record = recordOf(deps, context, request, play);
  // Before the first step: a call that shows any effect is in the log (I4).
  const seq = await deps.log.append(sessionId, record);
  const frames = createFrameEmitter({
    bus: deps.bus,
    logger: context.logger,
    sessionId: streams ? sessionId : undefined,
    messageId: request.message_id,
    turnId: request.turn_id ?? context.turnId,
  });
  const idBase = request.message_id ?? randomId();
  const builder = new AnswerBuilder(frames, (index) => `call-${idBase}-${index}`);
  const names = createToolNames(request.tools.map((tool) => tool.name));
  const steps = play.steps.map((step) =>
    step.kind === "call" ? { ...step, functionId: names.functionId(step.functionId) } : step,
  );
  const ending: Ending =
    play.problem === null
      ? await perform(steps, {
          answer: builder,
          signal: context.signal,
          sleep: deps.clock.sleep,
          ordinal: () => deps.log.ordinal(sessionId, record, seq),
          wordMs: play.isPaced && streams ? deps.wordMs : 0,
        })
      : { kind: "failed", errorKind: "permanent", message: play.problem };
  const message = finalMessage({ request, steps, answer: builder, ending, now: deps.clock.now() });
  noteModelCall(message);
  await frames.flush();
  return { message, streamed: frames.streamed, framed: frames.framed };
}

function recordOf(deps: AnswerDeps, context: HandlerContext, request: ModelRequest, play: Play): CallRecord {
  return {
    message_id: request.message_id ?? "",
    block: play.block,
    attempt: context.attempt,
    idempotency_key: context.idempotencyKey ?? "",
    at: deps.clock.now(),
    model: request.model,
    script: play.script,
  };
}
