// How a request becomes a durable input: the one implementation behind run::start, run::abort and the inboxes, used by
// the orchestrator's functions and, while none is live, by the harness itself.
import {
  type AbortBody,
  type AgentMessage,
  type AppendBody,
  bodyDigest,
  ContentBlock,
  type InboxBody,
  isBusy,
  isTerminalState,
  type MessageInput,
  type RunStartRequest,
  type RunStartResult,
  randomId,
  type StartBody,
  type StoredCommit,
  type StoredInput,
  type TurnRequest,
  turnIdOf,
} from "@flotilla/contracts";
import { FlotillaError, invalidInput } from "@flotilla/errors";
import { chooseModel, type ModelDefaults } from "./door-model.ts";
import type { Bus } from "./types.ts";

export interface DoorOptions {
  readonly defaults: ModelDefaults & { readonly approvalTtlMs: number };
  readonly traceparent?: string | null;
  readonly now?: () => number;
}

/** From here on the doors refuse new inputs; a commit holds at most 1,000 pending ones. */
const pendingLimit = 900;
/** How long a door waits for an input of another kind to be taken before it calls the session busy. */
const settleMs = 2_000;

type StartInput = StoredInput<StartBody>;

/** I1: answers only after JetStream has acknowledged the input. Idempotent by message id. */
export async function acceptStart(bus: Bus, request: RunStartRequest, options: DoorOptions): Promise<RunStartResult> {
  const now = (options.now ?? Date.now)();
  const messageId = request.message_id ?? randomId();
  const messages = messagesFrom(request, now);
  const { session_id: sessionId, message_id: _, ...rest } = request;
  const digest = bodyDigest(rest);
  const body: StartBody = {
    session_id: sessionId,
    message_id: messageId,
    turn_id: turnIdOf(sessionId, messageId),
    workspace: request.workspace ?? "default",
    on_busy: request.on_busy ?? "reject",
    messages,
    request: await turnRequest(bus, request, options),
    traceparent: options.traceparent ?? null,
  };
  const door = { bus, body, digest };
  if (body.on_busy === "reject") return startWhenIdle(door);
  if (body.on_busy === "steer") return steerOrStart(door);
  await refuseWhenFull(bus, sessionId, body.workspace);
  const result = await bus.journal.publishInput<StartBody>(sessionId, "start", messageId, body, { digest });
  if (result.kind === "exists") return repeated(door, result.input);
  if (result.kind === "fenced") throw new FlotillaError("BUS_UNAVAILABLE", "the input was refused without a cause");
  return answer(body, body.turn_id, result.seq);
}

interface Door {
  readonly bus: Bus;
  readonly body: StartBody;
  readonly digest: string;
}

/** `on_busy: reject`: stored only while the session's last message is still the idle commit that was read. */
async function startWhenIdle(door: Door): Promise<RunStartResult> {
  const { bus, body, digest } = door;
  const giveUpAt = Date.now() + settleMs;
  for (;;) {
    const idle = await idleSequence(door, giveUpAt);
    if (idle.kind === "repeated") return idle.answer;
    if (idle.kind === "busy") throw busy(body.session_id, idle.tail);
    const result = await bus.journal.publishInput<StartBody>(body.session_id, "start", body.message_id, body, {
      digest,
      fence: idle.seq,
    });
    if (result.kind === "stored") return answer(body, body.turn_id, result.seq);
    if (result.kind === "exists") return repeated(door, result.input);
  }
}

/** `on_busy: steer`: into the running turn's steering inbox, or a turn of its own when none runs. */
async function steerOrStart(door: Door): Promise<RunStartResult> {
  const { bus, body, digest } = door;
  const giveUpAt = Date.now() + settleMs;
  for (;;) {
    const earlier = await bus.journal.readInput<InboxBody>(body.session_id, "steering", body.message_id);
    if (earlier !== null) return repeatedSteering(door, earlier);
    const idle = await idleSequence(door, giveUpAt);
    if (idle.kind === "repeated") return idle.answer;
    if (idle.kind === "busy") {
      refuseFullTail(idle.tail);
      const inbox: InboxBody = { messages: body.messages };
      const stored = await bus.journal.publishInput(body.session_id, "steering", body.message_id, inbox, { digest });
      if (stored.kind === "exists") return repeatedSteering(door, stored.input);
      return answer(
        body,
        await turnReached(bus, body.session_id, idle.tail),
        stored.kind === "stored" ? stored.seq : 0,
      );
    }
    const result = await bus.journal.publishInput<StartBody>(body.session_id, "start", body.message_id, body, {
      digest,
      fence: idle.seq,
    });
    if (result.kind === "stored") return answer(body, body.turn_id, result.seq);
    if (result.kind === "exists") return repeated(door, result.input);
  }
}

type Idle =
  | { kind: "idle"; seq: number }
  | { kind: "busy"; tail: StoredCommit | null }
  | { kind: "repeated"; answer: RunStartResult };

/**
 * The sequence by which a start is fenced: that of the idle tail, 0 for a new session. While a session settles after its
 * turn, or after an input that starts nothing (a late timer, say), it is waited for until `giveUpAt`.
 */
async function idleSequence(door: Door, giveUpAt: number): Promise<Idle> {
  const { bus, body } = door;
  for (;;) {
    // Asked in this order: an input older than `last` is seen by the second question.
    const [last, earlier] = await Promise.all([
      bus.journal.last(body.session_id),
      bus.journal.readInput<StartBody>(body.session_id, "start", body.message_id),
    ]);
    if (earlier !== null) return { kind: "repeated", answer: repeated(door, earlier) };
    if (last === null) return { kind: "idle", seq: 0 };
    const tail = last.commit ?? (await bus.journal.tail(body.session_id, { fresh: true }));
    checkWorkspace(tail, body.workspace);
    if (isBusy(tail) && (openTurnOf(tail) !== null || waitingStart(tail) !== null)) return { kind: "busy", tail };
    if (tail?.kind === "idle" && tail.seq >= last.seq) return { kind: "idle", seq: tail.seq };
    const outstanding = await bus.journal.readInputs(body.session_id, tail?.commit.cursor ?? 0);
    if (outstanding.some((input) => input.kind === "start" || input.kind === "steering" || input.kind === "followup"))
      return { kind: "busy", tail };
    if (Date.now() > giveUpAt) return { kind: "busy", tail };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function repeated(door: Door, earlier: StartInput): RunStartResult {
  if (earlier.digest !== door.digest) throw conflict(door.body.message_id);
  return answer(door.body, earlier.body.turn_id, earlier.seq);
}

async function repeatedSteering(door: Door, earlier: StoredInput): Promise<RunStartResult> {
  if (earlier.digest !== door.digest) throw conflict(door.body.message_id);
  const tail = await door.bus.journal.tail(door.body.session_id, { fresh: true });
  return answer(door.body, tail?.commit.turn_id ?? door.body.turn_id, earlier.seq);
}

function answer(body: StartBody, turnId: string, seq: number): RunStartResult {
  return {
    session_id: body.session_id,
    turn_id: turnId,
    message_id: body.message_id,
    accepted: true,
    position: `${seq}.0`,
  };
}

function busy(sessionId: string, tail: StoredCommit | null): FlotillaError {
  const details =
    tail === null ? {} : { turn_id: tail.commit.turn_id, state: tail.commit.state?.state ?? "provisioning" };
  return new FlotillaError("SESSION_BUSY", `session ${sessionId} is busy; use on_busy queue, steer or interrupt`, {
    details,
  });
}

/** The turn that a tail leaves open; between turns there is none, whatever the commit still names. */
function openTurnOf(tail: StoredCommit | null): string | null {
  const state = tail?.commit.state ?? null;
  return state === null || isTerminalState(state.state) ? null : state.turn_id;
}

function waitingStart(tail: StoredCommit | null): string | null {
  return tail?.commit.pending.find((item) => item.kind === "start")?.id ?? null;
}

/** The turn that a message to a busy session reaches: the open one, or the one whose start waits. */
async function turnReached(bus: Bus, sessionId: string, tail: StoredCommit | null): Promise<string> {
  const open = openTurnOf(tail);
  if (open !== null) return open;
  const outstanding = await bus.journal.readInputs(sessionId, tail?.commit.cursor ?? 0);
  const start = waitingStart(tail) ?? outstanding.find((input) => input.kind === "start")?.id;
  return start === undefined ? (tail?.commit.turn_id ?? "") : turnIdOf(sessionId, start);
}

function conflict(messageId: string): FlotillaError {
  return new FlotillaError("MESSAGE_ID_CONFLICT", `message id ${messageId} was already used with another body`, {
    field: "message_id",
  });
}

/** A session of another workspace is as good as unknown. It has one from the commit on that takes its first start. */
function checkWorkspace(tail: StoredCommit | null, workspace: string): void {
  if (tail !== null && tail.commit.state !== null && tail.commit.workspace !== workspace)
    throw new FlotillaError("SESSION_NOT_FOUND", "there is no such session in this workspace");
}

function refuseFullTail(tail: StoredCommit | null): void {
  if ((tail?.commit.pending.length ?? 0) >= pendingLimit) {
    throw new FlotillaError("SESSION_INBOX_FULL", `${pendingLimit} inputs already wait on this session`, {
      retryAfterMs: 5_000,
    });
  }
}

async function refuseWhenFull(bus: Bus, sessionId: string, workspace: string): Promise<void> {
  const tail = await bus.journal.tail(sessionId, { fresh: true });
  checkWorkspace(tail, workspace);
  refuseFullTail(tail);
}

async function turnRequest(bus: Bus, request: RunStartRequest, options: DoorOptions): Promise<TurnRequest> {
  const chosen = await chooseModel(bus, request, options.defaults);
  return {
    ...chosen,
    mode: request.mode ?? null,
    system_prompt: request.system_prompt ?? "",
    functions: request.functions ?? [],
    max_turns: request.max_turns ?? null,
    approval_ttl_ms: request.approval_ttl_ms ?? options.defaults.approvalTtlMs,
    thinking_level: request.thinking_level ?? null,
  };
}

function messagesFrom(request: RunStartRequest, now: number): AgentMessage[] {
  if (request.text !== undefined && request.messages !== undefined)
    throw invalidInput("give either text or messages, not both", "text");
  if (request.text !== undefined) {
    if (request.text.length === 0) throw invalidInput("text is empty", "text");
    return [{ role: "user", content: [{ type: "text", text: request.text }], timestamp: now }];
  }
  if (request.messages === undefined || request.messages.length === 0)
    throw invalidInput("text or messages is needed", "messages");
  return request.messages.map((message, index) => normaliseMessage(message, now, `messages.${index}`));
}

/** A client's message as it is stored: content in blocks, with a time. */
export function normaliseMessage(
  input: MessageInput | AgentMessage | string,
  now: number,
  field = "message",
): AgentMessage {
  if (typeof input === "string") return { role: "user", content: [{ type: "text", text: input }], timestamp: now };
  if (input.role === "assistant" || input.role === "function_result")
    return { ...input, timestamp: input.timestamp ?? now };
  const content = typeof input.content === "string" ? [{ type: "text" as const, text: input.content }] : input.content;
  if (content.length === 0) throw invalidInput("content is empty", `${field}.content`);
  for (const [index, block] of content.entries()) {
    if (!ContentBlock.safeParse(block).success) throw invalidInput("not a content block", `${field}.content.${index}`);
  }
  const timestamp = input.timestamp ?? now;
  if (input.role !== "custom") return { role: "user", content, timestamp };
  if (input.custom_type === undefined) throw invalidInput("a custom message needs custom_type", `${field}.custom_type`);
  return {
    role: "custom",
    custom_type: input.custom_type,
    content,
    timestamp,
    ...(input.display === undefined ? {} : { display: input.display }),
    ...(input.details === undefined ? {} : { details: input.details }),
  };
}

export interface InboxRequest {
  readonly session_id: string;
  readonly message_id?: string | undefined;
  readonly messages: readonly (MessageInput | AgentMessage | string)[];
  readonly workspace?: string | undefined;
}

/** Puts messages into a running turn's steering or follow-up inbox; an idle session has none (SESSION_IDLE). */
export async function acceptInbox(
  bus: Bus,
  kind: "steering" | "followup",
  request: InboxRequest,
  now: () => number = Date.now,
): Promise<{ session_id: string; message_id: string; turn_id: string; accepted: true; position: string }> {
  const { session_id: sessionId } = request;
  if (request.messages.length === 0) throw invalidInput("messages is empty", "messages");
  const messageId = request.message_id ?? randomId();
  const digest = bodyDigest(request.messages);
  const body: InboxBody = {
    messages: request.messages.map((message, index) => normaliseMessage(message, now(), `messages.${index}`)),
  };
  const [last, tail, earlier] = await Promise.all([
    bus.journal.lastSequence(sessionId),
    bus.journal.tail(sessionId, { fresh: true }),
    bus.journal.readInput<InboxBody>(sessionId, kind, messageId),
  ]);
  if (last === 0) throw new FlotillaError("SESSION_NOT_FOUND", `there is no session ${sessionId}`);
  if (request.workspace !== undefined) checkWorkspace(tail, request.workspace);
  const accepted = async (seq: number) => ({
    session_id: sessionId,
    message_id: messageId,
    turn_id: await turnReached(bus, sessionId, tail),
    accepted: true as const,
    position: `${seq}.0`,
  });
  const same = (input: StoredInput) => {
    if (input.digest !== digest) throw conflict(messageId);
    return accepted(input.seq);
  };
  if (earlier !== null) return same(earlier);
  if (!isBusy(tail) && (tail?.seq ?? 0) >= last)
    throw new FlotillaError("SESSION_IDLE", `session ${sessionId} has no running turn`);
  refuseFullTail(tail);
  const result = await bus.journal.publishInput(sessionId, kind, messageId, body, { digest });
  if (result.kind === "exists") return same(result.input);
  return accepted(result.kind === "stored" ? result.seq : 0);
}

/** Stores an append; the caller waits for the commit that holds it. */
export async function acceptAppend(
  bus: Bus,
  request: { session_id: string; message_id: string; parent_id: string | null; messages: readonly AgentMessage[] },
): Promise<{ seq: number; repeated: boolean }> {
  const body: AppendBody = { parent_id: request.parent_id, messages: [...request.messages] };
  const digest = bodyDigest({
    parent_id: request.parent_id,
    messages: request.messages.map(({ timestamp: _, ...rest }) => rest),
  });
  const result = await bus.journal.publishInput(request.session_id, "append", request.message_id, body, { digest });
  if (result.kind === "stored") return { seq: result.seq, repeated: false };
  if (result.kind === "fenced") throw new FlotillaError("BUS_UNAVAILABLE", "the input was refused without a cause");
  if (result.input.digest !== digest) throw conflict(request.message_id);
  return { seq: result.input.seq, repeated: true };
}

export interface AbortResult {
  session_id: string;
  aborted: boolean;
  state: string | null;
}

/** Cancels the running turn and answers after it has ended; nothing running: `aborted: false`. */
export async function acceptAbort(
  bus: Bus,
  request: { session_id: string; reason?: string | null | undefined; workspace?: string | undefined },
  timeoutMs = 12_000,
): Promise<AbortResult> {
  const { session_id: sessionId } = request;
  const [last, tail] = await Promise.all([
    bus.journal.lastSequence(sessionId),
    bus.journal.tail(sessionId, { fresh: true }),
  ]);
  if (last === 0) throw new FlotillaError("SESSION_NOT_FOUND", `there is no session ${sessionId}`);
  if (request.workspace !== undefined) checkWorkspace(tail, request.workspace);
  if (!isBusy(tail) && (tail?.seq ?? 0) >= last)
    return { session_id: sessionId, aborted: false, state: tail?.commit.state?.state ?? null };
  const body: AbortBody = { turn_id: openTurnOf(tail), reason: request.reason ?? null };
  const stored = await bus.journal.publishInput(sessionId, "abort", randomId(), body);
  if (stored.kind === "fenced") throw new FlotillaError("BUS_UNAVAILABLE", "the abort was refused without a cause");
  // Nobody else has its id: one that exists is our own, whose acknowledgement was lost.
  return waitForEnd(bus, sessionId, stored.kind === "stored" ? stored.seq : stored.input.seq, timeoutMs);
}

/** Waits for the commit that has taken the abort and after which no turn of that time runs. */
async function waitForEnd(bus: Bus, sessionId: string, seq: number, timeoutMs: number): Promise<AbortResult> {
  const giveUpAt = Date.now() + timeoutMs;
  let wake = (): void => {};
  const watch = bus.journal.watch(sessionId, () => wake());
  try {
    await watch.ready();
    for (;;) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, 500).unref();
      });
      const commits = await bus.journal.readCommits(sessionId, seq + 1);
      const taken = commits.filter((stored) => stored.commit.cursor >= seq);
      for (const stored of taken) {
        const end = stored.commit.events.find((event) => event.type === "agent_end");
        if (end?.type === "agent_end")
          return {
            session_id: sessionId,
            aborted: end.reason === "aborted",
            state: stored.commit.state?.state ?? null,
          };
        const rejected = stored.commit.events.some(
          (event) => event.type === "input_rejected" && event.kind === "abort",
        );
        if (rejected) return { session_id: sessionId, aborted: false, state: stored.commit.state?.state ?? null };
      }
      if (Date.now() > giveUpAt)
        throw new FlotillaError("TIMEOUT", "the abort is stored, but the turn has not ended yet");
      await changed;
    }
  } finally {
    watch.stop();
  }
}
