// A function's contract as a value: id, schemas, replay class, timeout and who may see it.
import { z } from "zod";
import { functionIdPattern } from "./ids.ts";
import type { FunctionManifest } from "./registry.ts";

export interface FunctionContract<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> {
  readonly id: string;
  readonly description: string;
  readonly request: I;
  readonly response: O;
  /** May an execution whose outcome is unknown be run again: never, always (`safe`), or with the same key (`keyed`). */
  readonly replay: "never" | "safe" | "keyed";
  readonly timeoutMs: number;
  readonly execution: "parallel" | "sequential";
  /** Offered to models by discovery. */
  readonly agentVisible: boolean;
}

export function defineFunction<I extends z.ZodType, O extends z.ZodType>(options: {
  id: string;
  description: string;
  request: I;
  response: O;
  /** @default "safe" */
  replay?: "never" | "safe" | "keyed";
  /** @default 30000 */
  timeoutMs?: number;
  /** @default "parallel" */
  execution?: "parallel" | "sequential";
  /** @default false */
  agentVisible?: boolean;
}): FunctionContract<I, O> {
  if (!functionIdPattern.test(options.id)) throw new TypeError(`not a function id: ${options.id}`);
  return {
    id: options.id,
    description: options.description,
    request: options.request,
    response: options.response,
    replay: options.replay ?? "safe",
    timeoutMs: options.timeoutMs ?? 30_000,
    execution: options.execution ?? "parallel",
    agentVisible: options.agentVisible ?? false,
  };
}

/** JSON Schema is derived, never written. */
export function manifestOf(contract: FunctionContract): FunctionManifest {
  const schema = (type: z.ZodType, io: "input" | "output"): Record<string, unknown> => {
    const { $schema: _, ...rest } = z.toJSONSchema(type, { io, unrepresentable: "any" });
    return rest as Record<string, unknown>;
  };
  return {
    id: contract.id,
    request_schema: schema(contract.request, "input"),
    response_schema: schema(contract.response, "output"),
    replay: contract.replay,
    timeout_ms: contract.timeoutMs,
    execution: contract.execution,
    agent_visible: contract.agentVisible,
    description: contract.description,
  };
}
