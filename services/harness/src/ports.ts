// What the front door's routes and functions need, declared where it is used.
import type { MessageInput, MessageWithEntryId, RunStartRequest, RunStartResult } from "@flotilla/contracts";
import type { Position } from "./domain/position.ts";
import type { SessionDetail } from "./domain/session-detail.ts";
import type { SentEvent } from "./domain/session-stream.ts";
import type { Identity } from "./domain/tokens.ts";

/** Reads of sessions straight from the journal. */
export interface Sessions {
  /** Contract: throws SESSION_NOT_FOUND for a session that is unknown or of a workspace the caller does not see. */
  require(sessionId: string, identity: Identity): Promise<void>;
  isVisible(sessionId: string, identity: Identity): Promise<boolean>;
  detail(sessionId: string): Promise<SessionDetail>;
  messages(sessionId: string): Promise<MessageWithEntryId[]>;
}

export interface AbortAnswer {
  readonly session_id: string;
  readonly aborted: boolean;
  readonly state: string | null;
}

export interface InboxAnswer {
  readonly session_id: string;
  readonly message_id: string;
  readonly turn_id: string;
  readonly accepted: true;
  readonly position: string;
}

/** Writes: durable when they answer (I1). */
export interface Doors {
  start(request: RunStartRequest): Promise<RunStartResult>;
  abort(request: { session_id: string; reason?: string | null; workspace?: string }): Promise<AbortAnswer>;
  inbox(
    kind: "steering" | "followup",
    request: { session_id: string; message_id?: string; messages: readonly MessageInput[]; workspace?: string },
  ): Promise<InboxAnswer>;
}

/** Where a session's events go. */
export interface Sink {
  /** Contract: resolves when more may be sent; never rejects, a dead sink swallows. */
  send(events: readonly SentEvent[]): Promise<void>;
  /** Contract: ends the sink for good because its reader is too slow or the stream cannot go on. */
  fail(reason: string): void;
}

export interface Pump {
  stop(): void;
}

export interface EventSource {
  /** Starts sending the events after `from`; null = a snapshot and the newest turn. */
  open(sessionId: string, from: Position | null, sink: Sink): Pump;
}

export interface ReadinessReport {
  readonly status: "ready" | "degraded" | "unavailable";
  readonly checks: Readonly<Record<string, string>>;
}

export interface Readiness {
  report(): Promise<ReadinessReport>;
}
