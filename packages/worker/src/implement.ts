// Binds a contract to its handler; the handler's types come from the contract.
import type { FunctionContract } from "@flotilla/contracts";
import type { z } from "zod";
import type { HandlerContext, Implementation } from "./types.ts";

export function implement<I extends z.ZodType, O extends z.ZodType>(
  contract: FunctionContract<I, O>,
  handle: (context: HandlerContext, request: z.output<I>) => Promise<z.input<O>> | z.input<O>,
): Implementation {
  return { contract, handle: handle as Implementation["handle"] };
}
