// What waits in an inbox, and what a drain took out of it. Pure.
import { type Commit, inboxEntryId, type PendingInput } from "@flotilla/contracts";

export type InboxName = "steering" | "followup";

/** An input that was taken or stored, without its body. */
export type InputRef = Pick<PendingInput, "seq" | "kind" | "id">;

/**
 * The inputs of `name` that were there before `commit` and are gone after it without having become entries or having
 * been rejected. `taken`: inputs between the former cursor and this one.
 */
export function drainedBy(
  commit: Commit,
  before: readonly InputRef[],
  taken: readonly InputRef[],
  name: InboxName,
): InputRef[] {
  const left = new Set(commit.pending.map((input) => input.seq));
  const entries = new Set(commit.entries.map((entry) => entry.id));
  const rejected = new Set(
    commit.events.flatMap((event) => (event.type === "input_rejected" && event.kind === name ? [event.id] : [])),
  );
  const candidates = new Map([...before, ...taken].map((input) => [input.seq, input]));
  return [...candidates.values()]
    .filter((input) => input.kind === name && input.seq <= commit.cursor)
    .filter(({ seq, id }) => !left.has(seq) && !entries.has(inboxEntryId(id, seq, 0)) && !rejected.has(id))
    .sort((a, b) => a.seq - b.seq);
}
