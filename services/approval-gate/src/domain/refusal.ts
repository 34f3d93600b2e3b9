// Why a decision is refused: one error per reason, so that a client can tell its user what happened. Pure.
import type { ApprovalBody, StoredInput } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";

export function alreadyDecided(input: StoredInput<ApprovalBody>): FlotillaError {
  const { decision, decided_by } = input.body;
  const details = { decision, decided_by, decided_at: input.at };
  switch (decision) {
    case "allow":
    case "deny":
      return new FlotillaError("APPROVAL_DECIDED", `the call was already decided: ${decision}`, { details });
    case "expired":
      return new FlotillaError("APPROVAL_EXPIRED", "the approval has expired", { details });
    case "aborted":
      return new FlotillaError("APPROVAL_REVOKED", "the approval was revoked: its turn was aborted", { details });
    default:
      return decision satisfies never;
  }
}

export function pastItsTime(expiresAt: number): FlotillaError {
  return new FlotillaError("APPROVAL_EXPIRED", "the approval has expired", { details: { expires_at: expiresAt } });
}

export function unknownCall(callId: string): FlotillaError {
  return new FlotillaError("APPROVAL_NOT_FOUND", `no call ${callId} of this session waits for an approval`, {
    field: "function_call_id",
  });
}

export function unknownSession(sessionId: string): FlotillaError {
  return new FlotillaError("SESSION_NOT_FOUND", `there is no session ${sessionId}`, { field: "session_id" });
}

export function wrongDigest(): FlotillaError {
  return new FlotillaError("APPROVAL_DIGEST_MISMATCH", "args_digest is not that of the arguments that will run", {
    field: "args_digest",
  });
}
