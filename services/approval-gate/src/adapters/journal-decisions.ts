// Reading waiting calls from the journal and storing decisions in it, each call's once for ever.
import type { Journal } from "@flotilla/bus";
import type { ApprovalBody, StoredCommit } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { findArguments } from "../domain/arguments.ts";
import type { AwaitingCall } from "../domain/awaiting.ts";
import { unknownSession } from "../domain/refusal.ts";
import type { Decisions } from "../ports.ts";

/** A waiting call is nearly always in the newest commits, so the journal is read from its end in growing windows. */
const windows = [256, 8_192, 262_144, Number.POSITIVE_INFINITY];

export function createJournalDecisions(journal: Journal): Decisions {
  return {
    async tail(sessionId) {
      const tail = await journal.tail(sessionId, { fresh: true });
      // A session exists from its first input on, before its first commit.
      if (tail === null && (await journal.lastSequence(sessionId)) === 0) throw unknownSession(sessionId);
      return tail;
    },

    decided: (sessionId, callId) => journal.readInput<ApprovalBody>(sessionId, "approval", callId),

    async decide(sessionId, body) {
      const result = await journal.publishInput(sessionId, "approval", body.function_call_id, body);
      if (result.kind === "stored") return null;
      if (result.kind === "fenced")
        throw new FlotillaError("BUS_UNAVAILABLE", "the decision was refused without a cause");
      // A publish whose answer was lost is repeated by the bus and then meets itself.
      return result.input.body.decision_id === body.decision_id ? null : result.input;
    },

    async argumentsOf(sessionId, tail, calls) {
      const found = new Map<string, unknown>();
      for (const window of windows) {
        const from = Math.max(1, tail.seq - window + 1);
        collect(found, await journal.readCommits(sessionId, from), calls);
        if (found.size === calls.length) return found;
        if (from === 1) break;
      }
      const missing = calls.find((call) => !found.has(call.id));
      throw new FlotillaError("TURN_INVARIANT", `the journal has no arguments with the digest of call ${missing?.id}`);
    },
  };
}

function collect(found: Map<string, unknown>, commits: readonly StoredCommit[], calls: readonly AwaitingCall[]): void {
  for (const call of calls) {
    if (found.has(call.id)) continue;
    const match = findArguments(commits, call);
    if (match !== null) found.set(call.id, match.args);
  }
}
