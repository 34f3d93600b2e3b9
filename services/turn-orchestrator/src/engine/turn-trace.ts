// One trace per turn (I15): every owner's steps go on in the trace of the request that started the turn, each as a span
// from the commit before it to its own. Nothing is made while telemetry is off.
import { isTerminalState, type TurnRecord } from "@flotilla/contracts";
import {
  attributeNames,
  derivedTraceparent,
  extractContext,
  idAttributesOf,
  isTracing,
  spanNames,
  withIds,
} from "@flotilla/telemetry";
import {
  type Attributes,
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";

export interface StepOwner {
  readonly worker: string;
  readonly instance: string;
}

/** Of the ownership that the step runs under. */
export interface StepFacts {
  readonly epoch: number;
  readonly takeovers: number;
}

/** The steps of one session under one owner. */
export class TurnTrace {
  readonly #owner: StepOwner;
  #open: { readonly span: Span; readonly context: Context } | null = null;
  /** A step that opens a turn belongs to that turn, which nobody knows before: its span is made when it has ended. */
  #opening: { readonly startedAt: number; readonly facts: StepFacts; readonly before: string | null } | null = null;

  constructor(owner: StepOwner) {
    this.#owner = owner;
  }

  /** Runs one round of a step; the rounds up to the next commit are one span. */
  run<T>(turn: TurnRecord | null, facts: StepFacts, round: () => Promise<T>): Promise<T> {
    if (turn === null || isTerminalState(turn.state)) {
      if (isTracing()) this.#opening ??= { startedAt: Date.now(), facts, before: turn?.turn_id ?? null };
      return context.with(ROOT_CONTEXT, round);
    }
    if (!isTracing()) return context.with(contextOf(turn), round);
    this.#open ??= this.#start(turn, facts, turn.state);
    return context.with(this.#open.context, round);
  }

  /** The commit of the step is stored. */
  committed(turn: TurnRecord | null, kind: "run" | "idle"): void {
    const opening = this.#opening;
    this.#opening = null;
    if (opening !== null && turn !== null && turn.turn_id !== opening.before && turn.turns > 0) {
      this.#open = this.#start(turn, opening.facts, "provisioning", opening.startedAt);
    }
    this.#end(kind, turn);
  }

  /** Whoever has the session now goes on with the step. */
  lost(): void {
    this.#opening = null;
    this.#end("lost", null);
  }

  #start(turn: TurnRecord, facts: StepFacts, state: string, startedAt?: number): { span: Span; context: Context } {
    const parent = contextOf(turn);
    const options = {
      attributes: attributesOf(turn, this.#owner, facts, state),
      ...(startedAt === undefined ? {} : { startTime: startedAt, links: linksOf(turn) }),
    };
    const span = trace.getTracer("flotilla").startSpan(spanNames.step(state), options, parent);
    return { span, context: trace.setSpan(parent, span) };
  }

  #end(how: "run" | "idle" | "lost", turn: TurnRecord | null): void {
    const span = this.#open?.span;
    this.#open = null;
    if (span === undefined) return;
    span.setAttribute(attributeNames.stepEnd, how);
    if (turn !== null) span.setAttribute(attributeNames.turnNextState, turn.state);
    if (turn?.error != null) {
      span.setAttribute(attributeNames.errorType, turn.error.code);
      span.setStatus({ code: SpanStatusCode.ERROR, message: turn.error.code });
    }
    span.end();
  }
}

function contextOf(turn: TurnRecord): Context {
  const ids = {
    sessionId: turn.session_id,
    messageId: turn.message_id,
    turnId: turn.turn_id,
    workspaceId: turn.workspace,
  };
  return withIds(remoteOf(turn.turn_id, turn.traceparent), ids);
}

function remoteOf(turnId: string, traceparent: string | null): Context {
  const known = traceparent ?? (isTracing() ? derivedTraceparent(turnId) : null);
  return extractContext(new Map(known === null ? [] : [["traceparent", known]]));
}

/** Turns of one session are linked, newest to oldest. */
function linksOf({ previous_turn: previous }: TurnRecord): Link[] {
  if (previous === undefined) return [];
  const linked = trace.getSpanContext(remoteOf(previous.turn_id, previous.traceparent));
  const attributes = { [attributeNames.linkKind]: "previous_turn", [attributeNames.turnId]: previous.turn_id };
  return linked === undefined ? [] : [{ context: linked, attributes }];
}

function attributesOf(turn: TurnRecord, owner: StepOwner, facts: StepFacts, state: string): Attributes {
  const { session_id: sessionId, message_id: messageId, turn_id: turnId, workspace: workspaceId } = turn;
  return {
    ...idAttributesOf({ sessionId, messageId, turnId, workspaceId }),
    [attributeNames.worker]: owner.worker,
    [attributeNames.instance]: owner.instance,
    [attributeNames.turnState]: state,
    [attributeNames.epoch]: facts.epoch,
    [attributeNames.takeovers]: facts.takeovers,
  };
}
