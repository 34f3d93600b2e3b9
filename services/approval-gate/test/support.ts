// A bus with the operator's login, gates on it with their own, and sessions parked the way an orchestrator parks them.
import { type Bus, connectBus } from "@flotilla/bus";
import {
  approvalGet,
  approvalList,
  approvalResolve,
  type Commit,
  type CommitKind,
  type PendingApproval,
  randomId,
  type StoredCommit,
} from "@flotilla/contracts";
import { isFlotillaError } from "@flotilla/errors";
import { createLogger } from "@flotilla/telemetry";
import { aCommit, type StartedNats } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { definition } from "../src/worker.ts";
import { type AskedCall, anApprovalRequested, anAssistantEntry, aTurn, digestOf } from "./builders.ts";

export function connectOperator(nats: StartedNats): Promise<Bus> {
  const logger = createLogger({ level: "error", name: "test" });
  return connectBus({ url: nats.url, worker: "operator", instance: randomId(), logger });
}

export function gateEnv(nats: StartedNats, env: Record<string, string> = {}): Record<string, string> {
  return { NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile, LOG_LEVEL: "silent", ...env };
}

export async function startGate(nats: StartedNats, env: Record<string, string> = {}): Promise<WorkersHandle> {
  const handle = runWorkers({ definitions: [definition], env: gateEnv(nats, env) });
  await handle.ready();
  return handle;
}

/** Appends one commit to a session. */
export async function commit(bus: Bus, parts: Partial<Commit> & { session_id: string }, kind: CommitKind) {
  const tail = await bus.journal.tail(parts.session_id, { fresh: true });
  const next = aCommit({ seq_no: (tail?.commit.seq_no ?? 0) + 1, ...parts });
  const result = await bus.journal.commit(kind, next, { on: "commits", seq: tail?.seq ?? 0 });
  if (result.kind !== "stored") throw new Error("another writer was first");
  const stored: StoredCommit = { seq: result.seq, kind, commit: next };
  return stored;
}

/** The model's calls are answered in one commit; `kind: "run"` leaves siblings running. */
export function park(bus: Bus, sessionId: string, calls: readonly AskedCall[], kind: CommitKind = "idle") {
  const state = kind === "run" ? ("function_execute" as const) : undefined;
  const awaiting = calls.filter((call) => (call.status ?? "awaiting") === "awaiting");
  return commit(
    bus,
    {
      session_id: sessionId,
      state: aTurn(sessionId, calls, state),
      entries: [anAssistantEntry(calls)],
      events: awaiting.map(anApprovalRequested),
    },
    kind,
  );
}

export interface Answer {
  readonly decision?: "allow" | "deny";
  readonly args_digest?: string;
  readonly reason?: string;
  readonly caller?: string;
}

export function decide(bus: Bus, sessionId: string, call: AskedCall, answer: Answer = {}): Promise<{ ok: true }> {
  const { caller = "client", ...rest } = answer;
  const request = { decision: "allow" as const, args_digest: digestOf(call), ...rest };
  return bus.call(approvalResolve, { session_id: sessionId, function_call_id: call.id, ...request }, { caller });
}

export async function list(bus: Bus, sessionId?: string): Promise<PendingApproval[]> {
  return (await bus.call(approvalList, sessionId === undefined ? {} : { session_id: sessionId })).approvals;
}

export async function get(bus: Bus, sessionId: string, callId: string): Promise<PendingApproval> {
  return (await bus.call(approvalGet, { session_id: sessionId, function_call_id: callId })).approval;
}

/** The code of the error, or `ok`. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (isFlotillaError(error)) return error.code;
    throw error;
  }
}
