// Stands in for the orchestrator: takes the inputs of one session when the test says so.
import type { Bus } from "@flotilla/bus";
import { type AppendBody, type Commit, type StoredInput, userEntryId } from "@flotilla/contracts";
import { aTurnRecord, until } from "@flotilla/testkit";
import { journalOf } from "./support.ts";

export function orchestratorOf(bus: Bus, sessionId: string) {
  const journal = journalOf(bus, sessionId);
  let leaf: string | null = null;
  let count = 0;
  return {
    journal,
    /** The next input of this kind that is stored after `afterSeq`. */
    nextInput: (kind: StoredInput["kind"], afterSeq = 0): Promise<StoredInput> =>
      until(async () => (await bus.journal.readInputs(sessionId, afterSeq)).find((input) => input.kind === kind), {
        what: `an input ${kind}`,
      }),
    /** Commits with everything up to `cursor` taken. */
    take: (kind: "run" | "idle", cursor: number, over: Partial<Commit> = {}) =>
      journal.commit(kind, {
        cursor,
        state: aTurnRecord({
          session_id: sessionId,
          state: kind === "idle" ? "stopped" : "assistant_streaming",
          leaf,
          entry_count: count,
        }),
        ...over,
      }),
    /** Commits the entries of an append. */
    async apply(input: StoredInput): Promise<void> {
      const { messages, parent_id } = (input as StoredInput<AppendBody>).body;
      const entries = messages.map((message, index) => {
        const id = userEntryId(input.id, index);
        const entry = {
          type: "message" as const,
          id,
          parent_id: index === 0 ? (parent_id ?? leaf) : leaf,
          timestamp: message.timestamp,
          message,
        };
        leaf = id;
        count += 1;
        return entry;
      });
      const state = aTurnRecord({ session_id: sessionId, leaf, entry_count: count });
      await journal.commit("idle", { cursor: input.seq, state, entries });
    },
  };
}
