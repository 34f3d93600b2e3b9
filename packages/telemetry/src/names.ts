// The registry of telemetry names: every metric, span and attribute of the product, with its unit and a sentence.

export interface MetricRow {
  readonly type: "counter" | "histogram" | "gauge";
  readonly unit: string;
  readonly description: string;
  readonly labels: readonly string[];
}

export const metricNames = {
  flotilla_calls_total: {
    type: "counter",
    unit: "calls",
    description: "Function calls that a worker answered, by result code (OK for success).",
    labels: ["worker", "function", "code"],
  },
  flotilla_call_duration_ms: {
    type: "histogram",
    unit: "ms",
    description: "Time from the arrival of a call to its reply.",
    labels: ["worker", "function"],
  },
  flotilla_calls_in_flight: {
    type: "gauge",
    unit: "calls",
    description: "Function calls that run now.",
    labels: ["worker"],
  },
  flotilla_policy_reloads_total: {
    type: "counter",
    unit: "files",
    description: "Permissions files that were taken or rejected.",
    labels: ["outcome"],
  },
  flotilla_policy_rules_stale: {
    type: "gauge",
    unit: "flag",
    description: "1 while the newest permissions file is not usable and older rules, or none, are in force.",
    labels: [],
  },
  flotilla_approval_audit_failures_total: {
    type: "counter",
    unit: "records",
    description: "Decisions whose audit record could not be stored.",
    labels: [],
  },
  flotilla_projected_commits_total: {
    type: "counter",
    unit: "commits",
    description:
      "Commits the projector took: applied, older than what was there, returned to the consumer, unreadable.",
    labels: ["outcome"],
  },
  flotilla_sessions_running: {
    type: "gauge",
    unit: "sessions",
    description: "Sessions whose anchor this orchestrator holds.",
    labels: [],
  },
  flotilla_commits_total: {
    type: "counter",
    unit: "commits",
    description: "Commits that were tried, by kind and whether they were stored or refused by the fence.",
    labels: ["kind", "outcome"],
  },
  flotilla_takeovers_total: {
    type: "counter",
    unit: "sessions",
    description: "Sessions taken over from another owner, after a crash or a planned hand-over.",
    labels: ["cause"],
  },
  flotilla_turns_total: {
    type: "counter",
    unit: "turns",
    description: "Turns that ended, by reason.",
    labels: ["reason"],
  },
  flotilla_event_streams: {
    type: "gauge",
    unit: "streams",
    description: "Event streams that the front door holds open.",
    labels: [],
  },
} as const satisfies Record<string, MetricRow>;

export type MetricName = keyof typeof metricNames;

export const spanNames = {
  /** Server side of one call. */
  execute: (functionId: string): string => `execute ${functionId}`,
  /** One HTTP request at the front door; `route` is the path with its placeholders. */
  serve: (method: string, route: string): string => `${method} ${route}`,
  /** Client side of one call. */
  call: (functionId: string): string => `call ${functionId}`,
  /** One step of a turn, from the commit before it to its own; `state` is the one that it found. */
  step: (state: string): string => `turn ${state}`,
} as const;

/** Attributes of spans; the first six also travel as baggage. */
export const attributeNames = {
  /** The session a span works for. */
  sessionId: "session.id",
  /** The message that started the turn. */
  messageId: "message.id",
  /** The function that runs. */
  functionId: "function.id",
  /** The workspace of the session. */
  workspaceId: "workspace.id",
  /** The turn. */
  turnId: "turn.id",
  /** Our id of the tool call that a function call serves. */
  callId: "function_call.id",
  /** The worker that made the span. */
  worker: "flotilla.worker",
  /** The instance of that worker. */
  instance: "flotilla.instance",
  /** Who called: a worker's name, `agent` or `client`. */
  caller: "flotilla.caller",
  /** Which attempt of the effect, from 1. */
  attempt: "flotilla.attempt",
  /** Result code of the call, OK for success. */
  code: "flotilla.code",
  /** The worker that a call goes to. */
  peer: "peer.service",
  /** State of the turn that a step found. */
  turnState: "turn.state",
  /** State of the turn after the step. */
  turnNextState: "turn.next_state",
  /** How the step ended: a commit of kind `run` or `idle`, or `lost` when another owner goes on with it. */
  stepEnd: "turn.step_end",
  /** Counts the owners of the session; a higher one fences a lower one. */
  epoch: "flotilla.epoch",
  /** Take-overs of this step so far. */
  takeovers: "flotilla.takeovers",
  /** What kind of a link to another trace: `previous_turn`. */
  linkKind: "flotilla.link",
  /** Method of an HTTP request. */
  httpMethod: "http.request.method",
  /** Path of an HTTP request with its placeholders. */
  httpRoute: "http.route",
  /** Status of the answer; that of an event stream is the one it began with. */
  httpStatus: "http.response.status_code",
  /** Why it failed: an error code, or the `error_kind` of a model call. */
  errorType: "error.type",
  /** Of a model call: always `chat`. */
  genAiOperation: "gen_ai.operation.name",
  /** Of a model call: the provider. */
  genAiSystem: "gen_ai.system",
  /** Of a model call: the model that was asked for. */
  genAiRequestModel: "gen_ai.request.model",
  /** Of a model call: how it ended, as a list of one. */
  genAiFinishReasons: "gen_ai.response.finish_reasons",
  /** Of a model call: tokens in. */
  genAiInputTokens: "gen_ai.usage.input_tokens",
  /** Of a model call: tokens out. */
  genAiOutputTokens: "gen_ai.usage.output_tokens",
} as const;
