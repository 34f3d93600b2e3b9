// Waiting for the commit that acts on an input: its cursor has passed the input and it is not pending any more.
import type { Bus } from "@flotilla/bus";
import type { StoredCommit } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";

export interface AppliedInput {
  /** The commit before, as far as it is later than `fromSeq`. */
  readonly before: StoredCommit | null;
  readonly commit: StoredCommit;
}

const lookAgainMs = 1_000;

/** `fromSeq`: where to begin reading commits; at the latest the input's own sequence. */
export async function untilApplied(
  bus: Bus,
  input: { sessionId: string; seq: number; fromSeq: number },
  limits: { deadline: number; signal: AbortSignal },
): Promise<AppliedInput> {
  let wake = (): void => {};
  let news = 0;
  const watch = bus.journal.watch(input.sessionId, () => {
    news += 1;
    wake();
  });
  try {
    await watch.ready();
    let before: StoredCommit | null = null;
    for (;;) {
      const seen = news;
      for (const commit of await bus.journal.readCommits(
        input.sessionId,
        before === null ? input.fromSeq : before.seq + 1,
      )) {
        if (isApplied(commit, input.seq)) return { before, commit };
        before = commit;
      }
      const remaining = limits.deadline - Date.now();
      if (remaining <= 0 || limits.signal.aborted) {
        throw new FlotillaError(
          "TIMEOUT",
          "the input is stored and not applied yet: the session is in the middle of a turn",
        );
      }
      if (news === seen) await nextWake(Math.min(remaining, lookAgainMs), limits.signal, (set) => (wake = set));
    }
  } finally {
    watch.stop();
  }
}

function isApplied({ commit }: StoredCommit, seq: number): boolean {
  return commit.cursor >= seq && !commit.pending.some((input) => input.seq === seq);
}

function nextWake(ms: number, signal: AbortSignal, arm: (wake: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    arm(done);
  });
}
