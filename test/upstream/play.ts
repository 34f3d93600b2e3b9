// A provider worker without a bus: its real definition, built for a fake upstream, one call at a time.
import {
  type AssistantMessage,
  authGetToken,
  type FunctionContract,
  modelsGet,
  ProviderRequest,
  type TokenFrame,
} from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { HandlerContext, Runtime, WorkerDefinition } from "@flotilla/worker";
import type { CatalogEntry, Scenario, Scenarios, Upstream } from "./upstream.mjs";

export interface Played {
  readonly message: AssistantMessage;
  readonly streamed: boolean;
  /** As published at once, in order. */
  readonly frames: readonly TokenFrame[];
  /** As stored for resuming. */
  readonly stored: readonly TokenFrame[];
  readonly logs: readonly string[];
}

export interface PlayOptions {
  readonly definition: WorkerDefinition;
  readonly functionId: string;
  readonly env: Readonly<Record<string, string>>;
  readonly catalog?: readonly CatalogEntry[];
  /** @default an API key */
  readonly credential?: unknown;
  readonly signal?: AbortSignal;
  readonly onFrame?: (frame: TokenFrame) => void;
  /** Replaces a call of another function. */
  readonly onCall?: (id: string) => unknown;
}

export async function play(call: Record<string, unknown>, options: PlayOptions): Promise<Played> {
  const frames: TokenFrame[] = [];
  const stored: TokenFrame[] = [];
  const logs: string[] = [];
  const decoder = new TextDecoder();
  const logger = recordingLogger(logs);
  const bus = {
    nc: {
      publish: (_subject: string, data: string | Uint8Array) => {
        const frame = JSON.parse(typeof data === "string" ? data : decoder.decode(data)) as TokenFrame;
        frames.push(frame);
        options.onFrame?.(frame);
      },
    },
    deltas: {
      append: async (_sessionId: string, _messageId: string, joined: readonly TokenFrame[]) => {
        stored.push(...joined);
      },
    },
  };
  const runtime = { bus, logger, env: options.env, clock: { now: Date.now } } as unknown as Runtime;
  const worker = await options.definition.build(runtime);
  const implementation = worker.functions.find(({ contract }) => contract.id === options.functionId);
  if (implementation === undefined) throw new Error(`the worker has no ${options.functionId}`);
  const context = contextOf(options, logger);
  const request = ProviderRequest.parse({ session_id: "s-1", turn_id: "t-1", message_id: "t-1-1-1", ...call });
  const reply = (await implementation.handle(context, request as never)) as {
    message: AssistantMessage;
    streamed: boolean;
  };
  return { ...reply, frames, stored, logs };
}

function contextOf(options: PlayOptions, logger: Logger): HandlerContext {
  const answers = (contract: FunctionContract, payload: Record<string, unknown>): unknown => {
    const other = options.onCall?.(contract.id);
    if (other !== undefined) return other;
    if (contract.id === authGetToken.id) {
      return "credential" in options ? options.credential : { type: "api_key", key: "test-key-0123456789" };
    }
    if (contract.id !== modelsGet.id) throw new Error(`not foreseen: ${contract.id}`);
    const entry = options.catalog?.find(({ id }) => id === payload.model_id);
    return entry === undefined ? null : { api: "x", display_name: entry.id, ...entry };
  };
  return {
    signal: options.signal ?? new AbortController().signal,
    deadline: Date.now() + 600_000,
    logger,
    caller: "turn-orchestrator",
    functionId: options.functionId,
    workspace: "default",
    epoch: 1,
    attempt: 1,
    call: async (contract: FunctionContract, payload: Record<string, unknown>) => answers(contract, payload),
  } as unknown as HandlerContext;
}

function recordingLogger(lines: string[]): Logger {
  const record =
    (level: string) =>
    (message: string, meta?: unknown): void => {
      lines.push(`${level} ${message} ${JSON.stringify(meta ?? {})}`);
    };
  const logger = Object.fromEntries(["trace", "debug", "info", "warn", "error"].map((level) => [level, record(level)]));
  return Object.assign(logger, { with: () => logger as unknown as Logger }) as unknown as Logger;
}

/** The scenarios with these added or put in the place of those with the same name. */
export function withScenarios(all: Scenarios, own: readonly Scenario[]): Scenarios {
  const byName = new Map([...all.byName, ...own.map((scenario) => [scenario.name, scenario] as const)]);
  return { catalog: all.catalog, scenarios: [...byName.values()], byName };
}

export function requestsOf(upstream: Upstream, name: string) {
  return upstream.requests().filter((request) => request.scenario === name);
}
