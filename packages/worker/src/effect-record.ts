// Reading and writing outcome records until their fate is known; the bus may be away for as long as it likes.
import { type Bus, isBlobRef, type OutcomeRecord } from "@flotilla/bus";
import { errorFromBody, FlotillaError, isFlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import { systemClock } from "./system-clock.ts";

/** Larger results are kept in the object store. */
const inlineLimitBytes = 32 * 1024;
const longestPauseMs = 500;

export interface StoredOutcome {
  readonly record: OutcomeRecord;
  readonly revision: number;
}

/** `recorded`: ours stands. `gone`: the record was deleted with its session. `replaced`: another instance took the key over. */
export type Settlement = "recorded" | "gone" | "replaced";

/**
 * Replaces the `running` record by its outcome. Tries until the bus has acknowledged or refused it: the result must not be
 * lost while the process lives. `bytes`: size of the result as JSON.
 */
export async function settleRecord(
  deps: { readonly bus: Bus; readonly logger: Logger },
  key: string,
  record: OutcomeRecord,
  expected: number,
  bytes = 0,
): Promise<Settlement> {
  const { bus, logger } = deps;
  for (let tries = 0; ; tries++) {
    try {
      const revision = await bus.outcomes.write(key, await stored(bus, record, bytes), expected);
      if (revision !== null) return "recorded";
      const found = await bus.outcomes.read(key, { fresh: true });
      if (found === null) return "gone";
      return isSameRecord(found.record, record) ? "recorded" : "replaced";
    } catch (error) {
      if (!isPassing(error)) throw error;
      if (tries === 0) logger.warn("an outcome could not be recorded yet; trying until it is", { key, error });
    }
    await backOff(tries);
  }
}

/** Whether it is worth trying again: the bus was away, or its answer was lost. */
export function isPassing(error: unknown): boolean {
  return !isFlotillaError(error) || error.disposition === "retry";
}

export function backOff(tries: number): Promise<void> {
  return systemClock.sleep(Math.min(longestPauseMs, 25 * 2 ** Math.min(tries, 6)));
}

/** The same record by the same writer; an earlier write of it had been stored although its answer was lost. */
export function isSameRecord(found: OutcomeRecord, ours: OutcomeRecord): boolean {
  if (found.status !== ours.status || found.epoch !== ours.epoch || found.at !== ours.at) return false;
  return writerOf(found) === writerOf(ours);
}

function writerOf(record: OutcomeRecord): string {
  return record.status === "cancelled" ? record.by : record.instance;
}

/** The answer that a settled record stands for. */
export async function answerOf(bus: Bus, record: Exclude<OutcomeRecord, { status: "running" }>): Promise<unknown> {
  switch (record.status) {
    case "done":
      return isBlobRef(record.result) ? bus.blobs.getJson(record.result) : record.result;
    case "failed":
      throw errorFromBody(record.error);
    case "cancelled":
      throw new FlotillaError("CANCELLED", "the call was cancelled before it started");
    default:
      return record satisfies never;
  }
}

/** A large result, and one that only looks like a reference, are kept in the object store. */
async function stored(bus: Bus, record: OutcomeRecord, bytes: number): Promise<OutcomeRecord> {
  if (record.status !== "done" || (bytes <= inlineLimitBytes && !isBlobRef(record.result))) return record;
  return { ...record, result: await bus.blobs.putJson(record.result) };
}
