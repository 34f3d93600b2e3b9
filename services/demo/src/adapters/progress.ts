// How far a running call is, for whoever watches: core frames on `progress.<sid>`, nothing is stored.
import type { Bus } from "@flotilla/bus";
import { idPattern, subjects } from "@flotilla/contracts";
import type { HandlerContext } from "@flotilla/worker";

export interface ProgressFrame {
  readonly turn_id: string | null;
  readonly function_call_id: string | null;
  readonly function_id: string;
  readonly done_ms: number;
  readonly total_ms: number;
}

export type ReportProgress = (context: HandlerContext, doneMs: number, totalMs: number) => void;

export function createProgress(nc: Pick<Bus["nc"], "publish">): ReportProgress {
  return (context, doneMs, totalMs) => {
    const { sessionId } = context;
    if (sessionId === undefined || !idPattern.test(sessionId)) return;
    const frame: ProgressFrame = {
      turn_id: context.turnId ?? null,
      function_call_id: context.callId ?? null,
      function_id: context.functionId,
      done_ms: doneMs,
      total_ms: totalMs,
    };
    nc.publish(subjects.progress(sessionId), JSON.stringify(frame));
  };
}
