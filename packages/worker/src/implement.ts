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

/** With a look-up that begins before the handler may: see `Implementation.prepare`. */
export function implementPrepared<I extends z.ZodType, O extends z.ZodType, P>(
  contract: FunctionContract<I, O>,
  prepare: (context: HandlerContext, request: z.output<I>) => Promise<P>,
  handle: (context: HandlerContext, request: z.output<I>, prepared: Promise<P>) => Promise<z.input<O>>,
): Implementation {
  const withLookUp: Implementation["handle"] = (context, request, prepared) =>
    handle(context, request, (prepared as Promise<P> | undefined) ?? prepare(context, request));
  return { contract, handle: withLookUp, prepare: prepare as Implementation["prepare"] & {} };
}
