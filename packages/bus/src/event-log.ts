// An append-only log on a stream: every append is acknowledged, and a repeated one is stored once.
import { randomId } from "@flotilla/contracts";
import { readBatch } from "./direct-read.ts";
import { untilAnswered } from "./patience.ts";
import type { Bus } from "./types.ts";

export interface LoggedRecord<T> {
  readonly seq: number;
  readonly record: T;
}

export interface EventLog<T> {
  /**
   * Resolves with the sequence once the server has acknowledged the record; BUS_UNAVAILABLE when it does not within
   * `patienceMs` (default 10 s). The record may be stored even then.
   */
  append(subject: string, record: T, patienceMs?: number): Promise<number>;
  /** Records of the subjects that match, oldest first. No consumer is needed. */
  read(filter: string): Promise<LoggedRecord<T>[]>;
}

const pageSize = 256;
/** Short, because a request that was in flight when the connection broke is never answered. */
const attemptMs = 1_000;

export function createEventLog<T>(bus: Pick<Bus, "nc" | "js" | "jsm">, stream: string): EventLog<T> {
  return {
    async append(subject, record, patienceMs = 10_000) {
      const data = JSON.stringify(record);
      const msgID = randomId();
      const publish = () => bus.js.publish(subject, data, { msgID, timeout: attemptMs });
      const ack = await untilAnswered(bus.nc, `a record of ${stream}`, publish, patienceMs);
      return ack.seq;
    },
    async read(filter) {
      const records: LoggedRecord<T>[] = [];
      for (let seq = 1; ; ) {
        const query = { seq, next_by_subj: filter, batch: pageSize };
        const read = () => readBatch(bus.jsm, stream, query, attemptMs * 3);
        const page = await untilAnswered(bus.nc, `reading ${stream}`, read, 10_000);
        for (const message of page) records.push({ seq: message.seq, record: message.json<T>() });
        const last = page.at(-1);
        if (last === undefined || last.pending === 0) return records;
        seq = last.seq + 1;
      }
    },
  };
}
