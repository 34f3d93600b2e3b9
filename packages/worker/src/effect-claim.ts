// Who runs an effect: creates the `running` record of a key, or finds out why somebody else has it (I4).
//
// C1 A handler starts only after the server has acknowledged this instance's `running` record.
// C2 A write whose answer was lost is resolved by reading; it is never assumed to have failed.
// C3 A running record is waited for until it changes; it is replaced only by a caller's Fl-Reclaim of exactly that
//    revision, and only when the instance proves dead.
import type { Bus, OutcomeRecord } from "@flotilla/bus";
import { FlotillaError } from "@flotilla/errors";
import { backOff, isPassing, isSameRecord, type StoredOutcome } from "./effect-record.ts";
import { Execution } from "./execution.ts";
import { isInstanceDead } from "./instance-liveness.ts";
import { systemClock } from "./system-clock.ts";

export class KeyedExecution extends Execution {
  readonly key: string;
  /** Revision of a dead `running` record that may be replaced. */
  reclaim: number | undefined;

  constructor(key: string, deadline: number, epoch: number) {
    super(deadline, epoch);
    this.key = key;
  }

  /** Waiting for another instance's outcome ends with time, not by a cancel: that reaches the instance that runs it. */
  get stopsWaiting(): FlotillaError | undefined {
    return this.stopReason?.code === "CANCELLED" ? undefined : this.stopReason;
  }
}

type Settled = Exclude<OutcomeRecord, { status: "running" }>;
export type Claim = { kind: "claimed"; revision: number } | { kind: "settled"; record: Settled };

const livenessEveryMs = 1_000;
const longestPollMs = 250;

export async function claimEffect(bus: Bus, execution: KeyedExecution, ours: OutcomeRecord): Promise<Claim> {
  const { key } = execution;
  let expected = 0;
  let mayBeStored = false;
  for (let tries = 0; ; tries++) {
    if (execution.stopsWaiting !== undefined && !mayBeStored) throw execution.stopsWaiting;
    const attempt = await tryCreate(bus, key, ours, expected);
    if (attempt.kind === "claimed") return attempt;
    if (attempt.kind === "away") {
      mayBeStored = true;
      await backOff(tries);
      continue;
    }
    mayBeStored = false;
    if (attempt.found === null) {
      expected = 0;
      await backOff(tries);
      continue;
    }
    const next = await waitForTurn(bus, execution, attempt.found);
    if (next.kind === "settled") return next;
    expected = next.expected;
  }
}

type Attempt =
  | { kind: "claimed"; revision: number }
  | { kind: "refused"; found: StoredOutcome | null }
  /** The fate of the write is not known. */
  | { kind: "away" };

async function tryCreate(bus: Bus, key: string, ours: OutcomeRecord, expected: number): Promise<Attempt> {
  try {
    const revision = await bus.outcomes.write(key, ours, expected);
    if (revision !== null) return { kind: "claimed", revision };
    const found = await bus.outcomes.read(key, { fresh: true });
    if (found !== null && isSameRecord(found.record, ours)) return { kind: "claimed", revision: found.revision };
    return { kind: "refused", found };
  } catch (error) {
    if (!isPassing(error)) throw error;
    return { kind: "away" };
  }
}

type Next = { kind: "settled"; record: Settled } | { kind: "retry"; expected: number };

/** Follows a foreign record until it is settled, may be replaced, or the time is up. */
async function waitForTurn(bus: Bus, execution: KeyedExecution, first: StoredOutcome): Promise<Next> {
  let found: StoredOutcome | null = first;
  let nextLookMs = 0;
  for (let tries = 0; ; tries++) {
    if (found === null) return { kind: "retry", expected: 0 };
    const { record, revision } = found;
    if (record.status !== "running") return { kind: "settled", record };
    if (record.epoch > execution.epoch) throw staleEpoch();
    if (execution.stopsWaiting !== undefined) throw execution.stopsWaiting;
    if (performance.now() >= nextLookMs) {
      if (await isInstanceDead(bus, record.worker, record.instance)) return afterDeath(execution, revision);
      nextLookMs = performance.now() + livenessEveryMs;
    }
    await systemClock.sleep(Math.min(longestPollMs, 10 * 2 ** Math.min(tries, 5)));
    found = await readOr(bus, execution.key, found);
  }
}

function afterDeath(execution: KeyedExecution, revision: number): Next {
  if (execution.reclaim === revision) return { kind: "retry", expected: revision };
  throw new FlotillaError("OUTCOME_UNKNOWN", "the instance that ran this call is gone; what happened is unknown", {
    details: { revision },
  });
}

/** The record as it is now; the last one known while the bus is away. */
async function readOr(bus: Bus, key: string, last: StoredOutcome): Promise<StoredOutcome | null> {
  try {
    return await bus.outcomes.read(key, { fresh: true });
  } catch (error) {
    if (!isPassing(error)) throw error;
    return last;
  }
}

export function staleEpoch(): FlotillaError {
  return new FlotillaError("STALE_EPOCH", "a newer owner of the session has taken this call over");
}
