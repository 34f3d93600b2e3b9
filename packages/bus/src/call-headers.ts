// The headers of a call (wire.md 1): who calls, how long there is, the effect's key, and the trace.
import { headerNames } from "@flotilla/contracts";
import { injectContext } from "@flotilla/telemetry";
import { type MsgHdrs, headers as natsHeaders } from "@nats-io/transport-node";
import type { CallOptions } from "./types.ts";

export function callHeaders(caller: string, functionId: string, options: CallOptions, leftMs: number): MsgHdrs {
  const headers = natsHeaders();
  headers.set(headerNames.caller, options.caller ?? caller);
  headers.set(headerNames.timeoutMs, String(Math.max(1, Math.floor(leftMs))));
  const optional: [string, string | number | undefined][] = [
    [headerNames.workspace, options.workspace],
    [headerNames.idempotencyKey, options.idempotencyKey],
    [headerNames.epoch, options.epoch],
    [headerNames.attempt, options.attempt],
    [headerNames.digest, options.digest],
    [headerNames.reclaim, options.reclaim],
  ];
  for (const [name, value] of optional) if (value !== undefined) headers.set(name, String(value));
  const { sessionId, messageId, turnId, callId, workspace: workspaceId } = options;
  injectContext(headers, { sessionId, messageId, turnId, callId, functionId, workspaceId });
  return headers;
}
