// The spans of a turn's steps: which trace, how many, and none while telemetry is off.
import type { TurnRecord } from "@flotilla/contracts";
import { idsOf, registerPropagation, traceparentOf } from "@flotilla/telemetry";
import { aTurnRecord } from "@flotilla/testkit";
import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TurnTrace } from "./turn-trace.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
const facts = { epoch: 3, takeovers: 0 };
const owner = { worker: "turn-orchestrator", instance: "turn-orchestrator-0" };
const aTurn = (fields: Partial<TurnRecord>): TurnRecord => aTurnRecord({ session_id: "s1", ...fields });
const nothing = async (): Promise<void> => {};

beforeEach(() => registerPropagation());
afterEach(() => trace.disable());

describe("TurnTrace", () => {
  it("makes one span of the rounds up to a commit, in the stored trace, with the turn's ids (I15)", async () => {
    const exporter = record();
    const turn = aTurn({ state: "assistant_streaming", traceparent });
    const steps = new TurnTrace(owner);
    const seen: (string | null)[] = [];
    for (let round = 0; round < 3; round++) {
      await steps.run(turn, facts, async () => void seen.push(traceparentOf()));
    }
    steps.committed({ ...turn, state: "function_execute" }, "run");
    const [span, ...others] = exporter.getFinishedSpans();
    expect(others).toEqual([]);
    expect(span?.name).toBe("turn assistant_streaming");
    expect(span?.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
    expect(new Set(seen)).toEqual(new Set([`00-${traceId}-${span?.spanContext().spanId}-01`]));
    expect(span?.attributes).toMatchObject({
      "session.id": turn.session_id,
      "message.id": turn.message_id,
      "turn.id": turn.turn_id,
      "turn.next_state": "function_execute",
      "turn.step_end": "run",
      "flotilla.epoch": 3,
    });
  });

  it("gives the step that opens a turn to that turn, not to the one before it", async () => {
    const exporter = record();
    const steps = new TurnTrace(owner);
    const before = aTurn({
      state: "stopped",
      turn_id: "t-old",
      traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01`,
    });
    let during: string | null = "";
    await steps.run(before, facts, async () => {
      during = traceparentOf();
    });
    const previous_turn = { turn_id: before.turn_id, traceparent: before.traceparent };
    const opened = aTurn({ state: "assistant_streaming", turn_id: "t-new", traceparent, turns: 2, previous_turn });
    steps.committed(opened, "run");
    const [span] = exporter.getFinishedSpans();
    expect(during).toBeNull();
    expect(span?.name).toBe("turn provisioning");
    expect(span?.spanContext().traceId).toBe(traceId);
    expect(span?.links.map((link) => link.context.traceId)).toEqual(["1".repeat(32)]);
  });

  it("says that a step was lost to another owner, and why a turn failed", async () => {
    const exporter = record();
    const steps = new TurnTrace(owner);
    const turn = aTurn({ state: "function_execute", traceparent });
    await steps.run(turn, facts, nothing);
    steps.lost();
    await steps.run(turn, facts, nothing);
    steps.committed(
      { ...turn, state: "failed", error: { kind: "k", code: "TURN_CRASH_LOOP", message: "secret" } },
      "idle",
    );
    const [lost, failed] = exporter.getFinishedSpans();
    expect(lost?.attributes["turn.step_end"]).toBe("lost");
    expect(failed?.status).toEqual({ code: 2, message: "TURN_CRASH_LOOP" });
  });

  it("leaves the trace to the same id for every owner when no request started the turn", async () => {
    const exporter = record();
    const turn = aTurn({ state: "assistant_streaming", traceparent: null });
    for (const steps of [new TurnTrace(owner), new TurnTrace({ ...owner, instance: "turn-orchestrator-1" })]) {
      await steps.run(turn, facts, nothing);
      steps.lost();
    }
    const traces = exporter.getFinishedSpans().map((span) => span.spanContext().traceId);
    expect(traces).toHaveLength(2);
    expect(new Set(traces).size).toBe(1);
  });

  it("only hands the stored trace and the ids on while telemetry is off (I15)", async () => {
    const turn = aTurn({ state: "assistant_streaming", traceparent });
    const steps = new TurnTrace(owner);
    const seen = await steps.run(turn, facts, async () => [traceparentOf(), idsOf().turnId]);
    expect(seen).toEqual([traceparent, turn.turn_id]);
    const bare = await steps.run({ ...turn, traceparent: null }, facts, async () => traceparentOf());
    expect(bare).toBeNull();
    steps.committed(turn, "run");
    steps.lost();
  });
});

function record(): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
  return exporter;
}
