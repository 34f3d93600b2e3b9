// Taking inputs into a draft: in order, none skipped, each exactly once (I6). Taking is not acting. Pure.
import {
  type AbortBody,
  type ApprovalBody,
  type CommitEvent,
  type DrainBody,
  type InputKind,
  isTerminalState,
  type PendingInput,
  type StartBody,
  type StoredInput,
  type TimerBody,
} from "@flotilla/contracts";
import type { Draft } from "./draft.ts";

/** What the inputs of one taking ask of the running step. */
export interface Asked {
  abort: { reason: string | null } | null;
  /** A start with `on_busy: interrupt` waits. */
  isInterrupted: boolean;
  /** Steering came while a turn is open. */
  isSteered: boolean;
  /** Decisions on calls of the open batch. */
  decisions: ApprovalBody[];
  /** Timers that fired, by name. */
  fired: TimerBody[];
  /** Inbox messages that came after the turn had ended: they get a turn of their own. */
  isInboxWoken: boolean;
  /** Inputs that changed nothing: copied to the dead letters. */
  rejected: { input: StoredInput; code: string; message: string }[];
}

export function nothingAsked(): Asked {
  return {
    abort: null,
    isInterrupted: false,
    isSteered: false,
    decisions: [],
    fired: [],
    isInboxWoken: false,
    rejected: [],
  };
}

export function takeInputs(draft: Draft, inputs: readonly StoredInput[]): Asked {
  const asked = nothingAsked();
  for (const input of inputs) {
    if (input.seq <= draft.cursor) continue;
    draft.cursor = input.seq;
    takeOne(draft, asked, input);
  }
  return asked;
}

function takeOne(draft: Draft, asked: Asked, input: StoredInput): void {
  const problem = problemOf(input);
  if (problem !== null) {
    reject(draft, asked, input, "INVALID_INPUT", problem);
    return;
  }
  const isOpen = draft.state !== null && !isTerminalState(draft.state.state);
  switch (input.kind) {
    case "start": {
      const interrupts = (input.body as StartBody).on_busy === "interrupt";
      if (isOpen && interrupts) asked.isInterrupted = true;
      draft.pending.push({ ...pendingOf(input), ...(interrupts ? { interrupts } : {}) });
      return;
    }
    case "steering":
    case "followup": {
      if (isOpen && input.kind === "steering") asked.isSteered = true;
      if (!isOpen && !waitsForStart(draft.pending)) asked.isInboxWoken = true;
      draft.pending.push(pendingOf(input));
      return;
    }
    case "append":
    case "drain":
      draft.pending.push(pendingOf(input));
      return;
    case "abort":
      takeAbort(draft, asked, input as StoredInput<AbortBody>, isOpen);
      return;
    case "approval":
      takeDecision(draft, asked, input as StoredInput<ApprovalBody>, isOpen);
      return;
    case "timer":
      asked.fired.push(input.body as TimerBody);
      return;
    case "wake":
      return;
    case "vote":
    case "child":
      reject(draft, asked, input, "INVALID_INPUT", `inputs of kind ${input.kind} are not known to this version`);
      return;
    default:
      input.kind satisfies never;
  }
}

/** What each kind's body must have to be acted on; the doors store nothing else. */
const requiredFields: Readonly<Record<InputKind, Readonly<Record<string, "string" | "object" | "array">>>> = {
  start: { session_id: "string", turn_id: "string", message_id: "string", request: "object", messages: "array" },
  steering: { messages: "array" },
  followup: { messages: "array" },
  append: { messages: "array" },
  drain: { name: "string" },
  abort: {},
  approval: { function_call_id: "string", args_digest: "string", decision: "string" },
  timer: { name: "string" },
  wake: {},
  vote: {},
  child: {},
};

function problemOf(input: StoredInput): string | null {
  if (input.unreadable !== undefined) return `the body cannot be read: ${input.unreadable}`;
  if (!Object.hasOwn(requiredFields, input.kind)) return `inputs of kind ${input.kind} are not known to this version`;
  const { body } = input;
  if (typeof body !== "object" || body === null) return "the body is not an object";
  for (const [field, type] of Object.entries(requiredFields[input.kind])) {
    const value = (body as Record<string, unknown>)[field];
    const isRight = type === "array" ? Array.isArray(value) : typeof value === type && value !== null;
    if (!isRight) return `the body has no ${field}`;
  }
  return null;
}

function takeAbort(draft: Draft, asked: Asked, input: StoredInput<AbortBody>, isOpen: boolean): void {
  const target = input.body.turn_id;
  if (isOpen && (target === null || target === draft.state?.turn_id)) {
    asked.abort = { reason: input.body.reason };
    return;
  }
  // An abort that overtook the opening of its turn waits with the start it means.
  if (target === null && waitsForStart(draft.pending)) {
    draft.pending.push(pendingOf(input));
    return;
  }
  reject(draft, asked, input, "SESSION_IDLE", "the turn had already ended");
}

function takeDecision(draft: Draft, asked: Asked, input: StoredInput<ApprovalBody>, isOpen: boolean): void {
  const call = isOpen
    ? draft.state?.calls.find((candidate) => candidate.id === input.body.function_call_id)
    : undefined;
  if (call?.status === "awaiting" && call.args_digest === input.body.args_digest) asked.decisions.push(input.body);
  // A revocation is the orchestrator's own: its call is settled already.
  else if (input.body.decision === "allow" || input.body.decision === "deny")
    reject(draft, asked, input, "APPROVAL_NOT_FOUND", "no call waits for this decision");
}

function reject(draft: Draft, asked: Asked, input: StoredInput, code: string, message: string): void {
  const event: CommitEvent = { type: "input_rejected", kind: input.kind, id: input.id, code, message };
  draft.events.push(event);
  asked.rejected.push({ input, code, message });
}

function pendingOf(input: StoredInput): PendingInput {
  return { seq: input.seq, kind: input.kind, id: input.id };
}

function waitsForStart(pending: readonly PendingInput[]): boolean {
  return pending.some((item) => item.kind === "start");
}

/** Takes what waits out of the pending inputs again, as rejected. */
export function refuse(
  draft: Draft,
  asked: Asked,
  input: StoredInput,
  error: { readonly code: string; readonly message: string },
): void {
  draft.pending = draft.pending.filter((item) => item.seq !== input.seq);
  reject(draft, asked, input, error.code, error.message);
}

/** What a session between two turns does next. */
export function nextWaiting(pending: readonly PendingInput[]): PendingInput | null {
  const between = pending.find((item) => item.kind === "append" || item.kind === "drain");
  return between ?? nextStart(pending) ?? pending[0] ?? null;
}

/** The start whose turn is next: queued ones keep their order, one that interrupts comes before them. */
export function nextStart(pending: readonly PendingInput[]): PendingInput | null {
  const starts = pending.filter((item) => item.kind === "start");
  return starts.find((item) => item.interrupts === true) ?? starts[0] ?? null;
}

/** The abort that waits for the turn of `startSeq`, if one does. */
export function waitingAbort(pending: readonly PendingInput[], startSeq: number): PendingInput | null {
  return pending.find((item) => item.kind === "abort" && item.seq > startSeq) ?? null;
}

/** Removes what a drain names from the pending inbox messages that came before it. */
export function applyDrain(draft: Draft, drain: PendingInput, body: DrainBody): void {
  draft.pending = draft.pending.filter((item) => item !== drain && !(item.kind === body.name && item.seq < drain.seq));
}
