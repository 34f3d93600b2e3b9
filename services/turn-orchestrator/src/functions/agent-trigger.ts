// agent::trigger: one function through the gate of a turn's calls, outside of a turn (contracts.md 3.2).
import { agentTrigger, type FunctionResult } from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import { type HandlerContext, type Implementation, implement } from "@flotilla/worker";
import { answered, denied, failed, functionNotFound } from "../domain/results.ts";
import { refusalOf } from "../engine/plan-batch.ts";
import type { EngineDeps } from "../engine/types.ts";

export function makeAgentTrigger(deps: EngineDeps): Implementation {
  return implement(agentTrigger, (context, request) => trigger(deps, context, request.function, request.payload));
}

async function trigger(
  deps: EngineDeps,
  context: HandlerContext,
  functionId: string,
  payload: Record<string, unknown>,
): Promise<FunctionResult> {
  if (deps.bus.registry.resolve(functionId) === null) return functionNotFound(functionId).result;
  const ids = { sessionId: context.sessionId ?? "", turnId: context.turnId ?? "" };
  const verdict = await deps.ports.checkPolicy(functionId, payload, ids);
  const refusal = refusalOf(functionId, payload, verdict);
  if (refusal !== null) return denied(refusal).result;
  if (verdict.decision === "needs_approval") {
    const details = { error: "awaiting_approval", function: functionId };
    return {
      content: [{ type: "text", text: `${functionId} needs a human's approval; only a turn can wait for one.` }],
      details,
    };
  }
  try {
    const timeoutMs = Math.max(1, context.deadline - deps.now());
    return answered(
      await deps.bus.callId(functionId, payload, {
        caller: "agent",
        timeoutMs,
        signal: context.signal,
        sessionId: context.sessionId,
      }),
    ).result;
  } catch (error) {
    return failed(functionId, ensureFlotillaError(error).toBody()).result;
  }
}
