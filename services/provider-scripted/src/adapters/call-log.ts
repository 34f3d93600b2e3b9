// The durable log of scripted model calls: written before a call plays, read to count the attempts of a block.
import { type Bus, createEventLog } from "@flotilla/bus";
import { idPattern, streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";

export interface CallRecord {
  readonly message_id: string;
  readonly block: number;
  readonly attempt: number;
  readonly idempotency_key: string;
  readonly at: number;
  readonly model: string;
  /** Names the script within its session. */
  readonly script: string;
}

export interface CallLog {
  /** Resolves with the record's sequence once it is stored. */
  append(sessionId: string | undefined, record: CallRecord): Promise<number>;
  /** Oldest first. */
  read(sessionId: string): Promise<CallRecord[]>;
  /** How many calls of this block had begun with the one at `seq`, itself included. */
  ordinal(sessionId: string | undefined, record: CallRecord, seq: number): Promise<number>;
}

/** Calls without a session share a subject. */
const noSession = "_";
const ownWriteMs = 5_000;

export function createCallLog(bus: Pick<Bus, "nc" | "js" | "jsm">, sleep: (ms: number) => Promise<void>): CallLog {
  const log = createEventLog<CallRecord>(bus, streamNames.scriptedCalls);
  const subjectOf = (sessionId: string | undefined): string => {
    const isToken = sessionId !== undefined && idPattern.test(sessionId);
    return subjects.scriptedCall(isToken ? sessionId : noSession);
  };
  return {
    append: (sessionId, record) => log.append(subjectOf(sessionId), record),
    read: async (sessionId) => (await log.read(subjectOf(sessionId))).map(({ record }) => record),
    async ordinal(sessionId, { script, block }, seq) {
      const giveUpAt = performance.now() + ownWriteMs;
      for (;;) {
        const upToOurs = (await log.read(subjectOf(sessionId))).filter((entry) => entry.seq <= seq);
        // A follower's copy may not hold our own record yet; what is missing would be counted as not having happened.
        if (upToOurs.at(-1)?.seq === seq) {
          return upToOurs.filter(({ record }) => record.script === script && record.block === block).length;
        }
        if (performance.now() > giveUpAt) {
          throw new FlotillaError("BUS_UNAVAILABLE", "the log of scripted calls does not show the newest call");
        }
        await sleep(50);
      }
    },
  };
}
