// Workers whose every call is answered by the test, so that it decides what happens between any two of them.
import {
  type AssistantMessage,
  defineFunction,
  type FunctionContract,
  modelsGet,
  policyCheckPermissions,
  providerStream,
} from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { until } from "@flotilla/testkit";
import {
  defineWorker,
  type HandlerContext,
  type Implementation,
  implement,
  type WorkerDefinition,
} from "@flotilla/worker";
import { z } from "zod";

export interface PuppetCall {
  readonly context: HandlerContext;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the function takes
  readonly request: any;
  answer(value: unknown): void;
  fail(code: string, message?: string): void;
}

/** One function; its calls wait for the test, or are answered by `auto`; a cancelled one fails. */
export class Puppet {
  readonly calls: PuppetCall[] = [];
  auto: ((call: PuppetCall) => void) | null = null;
  readonly #seen = new Set<PuppetCall>();

  readonly handle = (context: HandlerContext, request: unknown): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const call = {
        context,
        request,
        answer: resolve,
        fail: (code: string, message = code) => reject(new FlotillaError(code, message)),
      };
      context.signal.addEventListener("abort", () => call.fail("CANCELLED", "cancelled"));
      this.calls.push(call);
      this.auto?.(call);
    });

  /** The next call of a session that the test has not seen. */
  async next(sessionId: string, timeoutMs = 5_000): Promise<PuppetCall> {
    const find = () => this.ofSession(sessionId).find((call) => !this.#seen.has(call));
    const call = await until(find, { what: "the puppet is called", timeoutMs });
    this.#seen.add(call);
    return call;
  }

  /** All calls of one session. */
  ofSession(sessionId: string): PuppetCall[] {
    return this.calls.filter(({ context }) => context.sessionId === sessionId);
  }
}

export interface Puppets {
  readonly model: Puppet;
  readonly policy: Puppet;
  /** `models::get`: away until the test says otherwise. */
  readonly models: Puppet;
  /** `puppet::never`, `puppet::safe` and `puppet::one` (sequential). */
  readonly never: Puppet;
  readonly safe: Puppet;
  readonly one: Puppet;
  readonly definitions: WorkerDefinition[];
}

const tool = (name: string, over: Partial<Parameters<typeof defineFunction>[0]> = {}): FunctionContract =>
  defineFunction({
    id: `puppet::${name}`,
    description: name,
    request: z.record(z.string(), z.unknown()),
    response: z.unknown(),
    agentVisible: true,
    timeoutMs: 60_000,
    ...over,
  });

/** Policy allows everything until the test says otherwise. */
export function puppets(): Puppets {
  const [model, policy, models, never, safe, one] = [1, 2, 3, 4, 5, 6].map(() => new Puppet()) as [
    Puppet,
    Puppet,
    Puppet,
    Puppet,
    Puppet,
    Puppet,
  ];
  policy.auto = (call) => call.answer({ decision: "allow", rule_id: "puppet" });
  models.auto = (call) => call.fail("WORKER_UNAVAILABLE");
  const serve = (contract: FunctionContract, puppet: Puppet): Implementation =>
    implement(contract, puppet.handle as never);
  const worker = (name: string, functions: Implementation[]): WorkerDefinition => ({
    name,
    build: () => defineWorker({ name, version: "1.0.0", functions, drainSeconds: 0 }),
  });
  const definitions = [
    worker("provider-puppet", [serve(providerStream("puppet"), model)]),
    worker("policy", [serve(policyCheckPermissions, policy)]),
    worker("models-catalog", [serve(modelsGet, models)]),
    worker("puppet", [
      serve(tool("never", { replay: "never" }), never),
      serve(tool("safe"), safe),
      serve(tool("one", { execution: "sequential" }), one),
    ]),
  ];
  return { model, policy, models, never, safe, one, definitions };
}

type Block = AssistantMessage["content"][number];

/** A model's answer: a text, or calls of functions. */
export function reply(
  content: string | [functionId: string, args?: unknown][],
  fields: Partial<AssistantMessage> = {},
): { message: AssistantMessage; streamed: boolean } {
  const blocks: Block[] =
    typeof content === "string"
      ? [{ type: "text", text: content }]
      : content.map(([id, args], index) => ({
          type: "function_call",
          id: `vendor-${index}`,
          function_id: id,
          arguments: args ?? {},
        }));
  const message: AssistantMessage = {
    role: "assistant",
    content: blocks,
    stop_reason: typeof content === "string" ? "end" : "function_call",
    usage: { input: 10, output: 5 },
    model: "puppet",
    provider: "puppet",
    timestamp: Date.now(),
    ...fields,
  };
  return { message, streamed: false };
}
