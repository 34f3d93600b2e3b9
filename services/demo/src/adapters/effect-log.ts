// The durable log of what the demo functions did. It is the tool's own word in every crash test.
import { type Bus, createEventLog } from "@flotilla/bus";
import { idPattern, streamNames, subjects } from "@flotilla/contracts";

export interface Effect {
  readonly function_id: string;
  readonly session_id: string | null;
  readonly function_call_id: string | null;
  readonly idempotency_key: string | null;
  readonly epoch: number;
  readonly args: unknown;
  /** Epoch ms. */
  readonly at: number;
  readonly phase: "start" | "done" | "aborted";
  /** `done` by a failure: its code. */
  readonly error?: string;
}

export interface EffectLog {
  /** Resolves once the record is stored. */
  append(effect: Effect): Promise<void>;
  /** Of one session or of all, oldest first. */
  read(sessionId: string | undefined): Promise<Effect[]>;
}

/** Effects of calls that belong to no session share a subject. */
const noSession = "_";

export function createEffectLog(bus: Pick<Bus, "nc" | "js" | "jsm">): EffectLog {
  const log = createEventLog<Effect>(bus, streamNames.demoEffects);
  return {
    async append(effect) {
      await log.append(subjects.demoEffect(effect.session_id ?? noSession), effect);
    },
    async read(sessionId) {
      if (sessionId !== undefined && !idPattern.test(sessionId)) return [];
      const records = await log.read(subjects.demoEffect(sessionId ?? ">"));
      return records.map(({ record }) => record);
    },
  };
}
