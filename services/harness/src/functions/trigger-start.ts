// harness::trigger and POST /v1/trigger of run::start: one path from an envelope to an accepted turn.
import { Id, RunStartRequest, type RunStartResult } from "@flotilla/contracts";
import { invalidInput } from "@flotilla/errors";
import { invalidRequest } from "../http/problem.ts";
import type { Doors } from "../ports.ts";

export interface TriggerEnvelope {
  readonly session_id?: string | undefined;
  readonly message_id?: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The outer ids win; a payload that names others is a mistake. */
export async function triggerStart(doors: Doors, envelope: TriggerEnvelope): Promise<RunStartResult> {
  const merged = {
    ...envelope.payload,
    session_id: same(envelope.session_id, envelope.payload.session_id, "session_id"),
    message_id: same(envelope.message_id, envelope.payload.message_id, "message_id"),
  };
  const parsed = RunStartRequest.strict().safeParse(merged);
  if (!parsed.success) throw invalidRequest(parsed.error, ["payload"]);
  return doors.start(parsed.data);
}

function same(outer: string | undefined, inner: unknown, field: string): string | undefined {
  if (inner === undefined) return outer;
  const parsed = Id.safeParse(inner);
  if (!parsed.success) throw invalidInput(`payload.${field}: must be an id`, `payload.${field}`);
  if (outer !== undefined && outer !== parsed.data) throw invalidInput(`${field} differs from the payload's`, field);
  return parsed.data;
}
