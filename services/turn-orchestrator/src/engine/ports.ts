// What a turn needs of other workers and of the timer stream; every answer that does not come has a stated meaning (I8).
import type { Bus } from "@flotilla/bus";
import {
  type ApprovalBody,
  type Model,
  modelsGet,
  type PolicyVerdict,
  policyCheckPermissions,
  subjects,
  type TimerBody,
} from "@flotilla/contracts";
import { ensureFlotillaError } from "@flotilla/errors";
import { patiently } from "./effect-call.ts";

export type Verdict = PolicyVerdict | { readonly decision: "unavailable"; readonly reason: string };

export interface OutsidePorts {
  /** Policy's verdict; silence for 5 s or an unreadable answer is `unavailable`, which denies (I8). */
  checkPolicy(
    functionId: string,
    args: Record<string, unknown>,
    ids: { sessionId: string; turnId: string },
  ): Promise<Verdict>;
  /** The catalog's row of a model; null when unknown or the catalog is away. */
  model(provider: string, modelId: string): Promise<Model | null>;
  /** Arms a timer that survives restarts; arming the same name again replaces it. */
  armTimer(sessionId: string, timer: TimerBody): Promise<void>;
  /** Stores a decision of our own (expired, aborted); answers the one that was stored first. */
  decideApproval(sessionId: string, decision: ApprovalBody): Promise<ApprovalBody["decision"]>;
  deadLetter(record: Record<string, unknown>): Promise<void>;
}

const modelTtlMs = 60_000;

export function createPorts(bus: Bus, now: () => number): OutsidePorts {
  const models = new Map<string, { model: Model | null; until: number }>();
  return {
    async checkPolicy(functionId, args, ids) {
      try {
        return await bus.call(
          policyCheckPermissions,
          { function_id: functionId, args },
          { timeoutMs: 5_000, sessionId: ids.sessionId, turnId: ids.turnId },
        );
      } catch (error) {
        return { decision: "unavailable", reason: `policy unreachable: ${ensureFlotillaError(error).code}` };
      }
    },
    async model(provider, modelId) {
      const key = `${provider}/${modelId}`;
      const kept = models.get(key);
      if (kept !== undefined && kept.until > now()) return kept.model;
      try {
        const model = await bus.call(modelsGet, { provider, model_id: modelId }, { timeoutMs: 2_000 });
        models.set(key, { model, until: now() + modelTtlMs });
        return model;
      } catch (error) {
        bus.logger.warn("the models catalog did not answer", { code: ensureFlotillaError(error).code });
        return kept?.model ?? null;
      }
    },
    async armTimer(sessionId, timer) {
      const schedule = { specification: new Date(timer.due_at), target: subjects.fired(sessionId, timer.name) };
      const subject = subjects.timer(sessionId, timer.name);
      await patiently({ bus, now }, () => bus.js.publish(subject, JSON.stringify(timer), { schedule, timeout: 5_000 }));
    },
    async decideApproval(sessionId, decision) {
      const result = await bus.journal.publishInput(sessionId, "approval", decision.function_call_id, decision);
      return result.kind === "exists" ? result.input.body.decision : decision.decision;
    },
    async deadLetter(record) {
      await bus.js.publish(subjects.dead(bus.worker), JSON.stringify(record), { timeout: 2_000 });
    },
  };
}
