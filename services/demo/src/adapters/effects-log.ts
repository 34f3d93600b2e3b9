// The durable log of what the demo functions did: the tool's own word in every crash test.
import { type Bus, createEventLog } from "@flotilla/bus";
import { idPattern, streamNames, subjects } from "@flotilla/contracts";

export interface EffectRecord {
  readonly function_id: string;
  readonly session_id: string | null;
  readonly function_call_id: string | null;
  readonly idempotency_key: string | null;
  readonly epoch: number;
  readonly args: unknown;
  readonly at: number;
  readonly phase: "start" | "done" | "aborted";
}

export interface EffectsLog {
  /** Resolves once the record is stored. */
  append(record: EffectRecord): Promise<void>;
  /** Oldest first; of one session or of all. */
  read(sessionId: string | undefined): Promise<EffectRecord[]>;
}

/** Executions without a session share a subject. */
const noSession = "_";

export function createEffectsLog(bus: Pick<Bus, "nc" | "js" | "jsm">): EffectsLog {
  const log = createEventLog<EffectRecord>(bus, streamNames.demoEffects);
  const subjectOf = (sessionId: string | null): string =>
    subjects.demoEffect(sessionId !== null && idPattern.test(sessionId) ? sessionId : noSession);
  return {
    append: async (record) => {
      await log.append(subjectOf(record.session_id), record, 60_000);
    },
    read: async (sessionId) => {
      const filter = sessionId === undefined ? subjects.demoEffect(">") : subjectOf(sessionId);
      return (await log.read(filter)).map(({ record }) => record);
    },
  };
}
