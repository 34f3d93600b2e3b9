// The arguments a waiting call will run with: found in the journal and proven by the digest. Pure.
import { argumentsDigest, type Commit, type StoredCommit } from "@flotilla/contracts";
import type { AwaitingCall } from "./awaiting.ts";

function* candidates(commit: Commit, callId: string): Generator<unknown> {
  for (const event of commit.events) {
    if (event.type === "approval_requested" && event.function_call_id === callId) yield event.args;
  }
  for (const entry of commit.entries) {
    if (entry.message.role !== "assistant") continue;
    for (const block of entry.message.content) {
      if (block.type === "function_call" && block.id === callId) yield block.arguments;
    }
  }
}

/** Null when none of the commits holds arguments with the call's digest: a human is never shown others. */
export function findArguments(commits: readonly StoredCommit[], call: AwaitingCall): { args: unknown } | null {
  for (const { commit } of commits.toReversed()) {
    for (const args of candidates(commit, call.id)) {
      if (argumentsDigest(call.function_id, args) === call.args_digest) return { args };
    }
  }
  return null;
}
