// Outcome records of effectful calls (I4): one message per key, CAS by revision, kept for 7 days.
import { streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamClient, JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import { isPermission, isWrongSequence } from "./journal-errors.ts";
import type { OutcomeRecord, Outcomes } from "./types.ts";

const ttl = "168h";
const decoder = new TextDecoder();

export function createOutcomes(deps: { js: JetStreamClient; jsm: JetStreamManager }): Outcomes {
  const { js, jsm } = deps;
  const read = async (key: string, fresh: boolean): Promise<{ record: OutcomeRecord; revision: number } | null> => {
    const query = { last_by_subj: subjects.outcome(key) };
    const found: StoredMsg | null = fresh
      ? await jsm.streams.getMessage(streamNames.outcomes, query)
      : await jsm.direct.getMessage(streamNames.outcomes, query);
    if (found === null || found.data.length === 0) return null;
    return { record: JSON.parse(decoder.decode(found.data)) as OutcomeRecord, revision: found.seq };
  };
  return {
    read: (key, options) => read(key, options?.fresh === true),
    async write(key, record, expected) {
      try {
        const ack = await js.publish(subjects.outcome(key), JSON.stringify(record), {
          ttl,
          expect: { lastSubjectSequence: expected },
          timeout: 2_000,
        });
        return ack.seq;
      } catch (error) {
        if (isWrongSequence(error)) return null;
        if (isPermission(error))
          throw new FlotillaError("BUS_PERMISSION", `outcome ${key} is not this worker's`, { cause: error });
        throw new FlotillaError("BUS_UNAVAILABLE", "the outcome record was not acknowledged", { cause: error });
      }
    },
  };
}
