// A chat on one session: a turn per line, approvals asked in between.
import { type ApiClient, ApiError, type SentEvent, sessionEvents } from "@flotilla/client";
import type { WireEvent } from "@flotilla/contracts";
import { Accepted, Session } from "../answers.ts";
import { decide } from "../commands/approvals.ts";
import { brief } from "../table.ts";

export interface ConversationOptions {
  readonly api: ApiClient;
  readonly sessionId: string;
  /** Provider, model and the like, sent with every turn. */
  readonly turnOptions: Readonly<Record<string, unknown>>;
  readonly onEvent: (event: SentEvent) => void;
  /** Contract: the person's answer; null when there is nobody to ask. */
  readonly ask: (question: string) => Promise<string | null>;
}

type ApprovalRequested = WireEvent & { type: "approval_requested" };

/** How a turn was left: it ended, or it waits for somebody else's decision. */
export type TurnOutcome = "ended" | "parked";

export class Conversation {
  readonly #options: ConversationOptions;
  #isRunning = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get #path(): string {
    return `/v1/sessions/${encodeURIComponent(this.#options.sessionId)}`;
  }

  /** Starts a turn and follows it to its end. */
  async say(text: string): Promise<TurnOutcome> {
    const { api, turnOptions } = this.#options;
    const { turn_id, position } = Accepted.parse(await api.post(`${this.#path}/turns`, { text, ...turnOptions }));
    return this.#follow(turn_id, position);
  }

  /** Follows the turn that runs in this session already; null when none does, or when the session is new. */
  async resume(): Promise<TurnOutcome | null> {
    const session = await this.#session();
    if (session === null || session.state === "stopped" || session.state === "failed") return null;
    return this.#follow(session.turn_id, undefined);
  }

  /** A message for the running turn. */
  async steer(text: string): Promise<void> {
    await this.#options.api.post(`${this.#path}/inbox/steering`, { messages: [{ content: text }] });
  }

  async abort(): Promise<void> {
    await this.#options.api.post(`${this.#path}/abort`, { reason: "Ctrl-C in the chat" });
  }

  async #session() {
    try {
      return Session.parse(await this.#options.api.get(this.#path));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  async #follow(turnId: string, lastEventId: string | undefined): Promise<TurnOutcome> {
    const { api, sessionId, onEvent } = this.#options;
    const left = new AbortController();
    this.#isRunning = true;
    try {
      for await (const event of sessionEvents(api, sessionId, { lastEventId, signal: left.signal })) {
        onEvent(event);
        const data = event.data as WireEvent;
        if (data.type === "agent_end" && data.turn_id === turnId) return "ended";
        if (data.type === "approval_requested" && !(await this.#settle(data))) return "parked";
      }
      return "ended";
    } finally {
      this.#isRunning = false;
      left.abort();
    }
  }

  /** False when there is nobody to ask. */
  async #settle(request: ApprovalRequested): Promise<boolean> {
    if (!(await this.#isPending(request))) return true;
    const { api, sessionId, ask } = this.#options;
    const what = `${request.function_id} ${brief(JSON.stringify(request.args) ?? "", 400)}`;
    const answer = await ask(`? allow ${what}  [y/N, or a reason to deny] `);
    if (answer === null) return false;
    const isAllowed = /^(y|yes)$/i.test(answer.trim());
    const reason = isAllowed || /^(n|no)?$/i.test(answer.trim()) ? undefined : answer.trim();
    const word = { sessionId, callId: request.function_call_id, digest: request.args_digest, reason };
    try {
      await decide(api, { ...word, decision: isAllowed ? "allow" : "deny" });
    } catch (error) {
      // Somebody else was faster, or the turn was aborted: the events say which.
      if (!(error instanceof ApiError && (error.status === 409 || error.status === 404))) throw error;
    }
    return true;
  }

  /** An event that is replayed may have been decided long ago. */
  async #isPending(request: ApprovalRequested): Promise<boolean> {
    const session = await this.#session();
    return session?.awaiting_approval.some((call) => call.function_call_id === request.function_call_id) === true;
  }
}
