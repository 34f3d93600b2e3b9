// Stored, joined token frames of streaming messages: only for resuming, kept for an hour.
import { streamNames, subjects, type TokenFrame } from "@flotilla/contracts";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { readBatch } from "./direct-read.ts";
import type { Deltas } from "./types.ts";

const decoder = new TextDecoder();

export function createDeltas(deps: { js: JetStreamClient; jsm: JetStreamManager }): Deltas {
  const { js, jsm } = deps;
  return {
    async append(sessionId, messageId, frames) {
      if (frames.length === 0) return;
      await js.publish(subjects.delta(sessionId, messageId), JSON.stringify(frames), { timeout: 2_000 });
    },
    async read(sessionId, messageId) {
      const subject = subjects.delta(sessionId, messageId);
      const frames: TokenFrame[] = [];
      for (let seq = 1; ; ) {
        const page = await readBatch(jsm, streamNames.turnDelta, { seq, next_by_subj: subject, batch: 256 });
        for (const message of page) frames.push(...(JSON.parse(decoder.decode(message.data)) as TokenFrame[]));
        const last = page.at(-1);
        if (last === undefined || last.pending === 0) return frames;
        seq = last.seq + 1;
      }
    },
  };
}
