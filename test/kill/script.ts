// The turn that is killed at every edge: two parallel tools, an approval, a keyed tool, streamed text.
export function killScript(index: number): string {
  return [
    `say Working on order ${index} now.`,
    `call demo::echo {"text":"echo-${index}"}`,
    'call demo::slow {"ms":150}',
    "---",
    "think Asking for the refund.",
    "tokens 30 10",
    `call demo::refund {"order":"o-${index}","amount":1}`,
    "---",
    `call demo::ship {"order":"o-${index}","ms":80}`,
    'call demo::slow {"ms":120}',
    "---",
    "tokens 30 5",
    `say All done with ${index}.`,
  ].join("\n");
}

/** Calls of one turn, by function. */
export const expectedStarts: Readonly<Record<string, number>> = {
  "demo::echo": 1,
  "demo::slow": 2,
  "demo::refund": 1,
  "demo::ship": 1,
};
export const modelCalls = 4;

/** The moments of a turn at which a kill is placed, in the words of its event stream. */
export const edges = [
  "accepted",
  "turn_state_changed:provisioning",
  "message_update",
  "message_complete",
  "function_execution_start",
  "function_execution_end",
  "turn_end",
  "turn_state_changed:assistant_streaming",
  "approval_requested",
  "turn_state_changed:function_awaiting_approval",
  "approved",
  "approval_decided",
  "turn_state_changed:function_execute",
  "turn_state_changed:steering_check",
  "message_update:last",
  "agent_end",
] as const;
export type Edge = (typeof edges)[number];
