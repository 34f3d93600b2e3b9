// Builders of Messages API events.
type Event = Record<string, unknown>;

export const start = (usage: Event = { input_tokens: 25, output_tokens: 1 }): Event => ({
  type: "message_start",
  message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, usage },
});
export const open = (index: number, content_block: Event): Event => ({
  type: "content_block_start",
  index,
  content_block,
});
export const delta = (index: number, fields: Event): Event => ({ type: "content_block_delta", index, delta: fields });
export const close = (index: number): Event => ({ type: "content_block_stop", index });
export const textDelta = (index: number, text: string): Event => delta(index, { type: "text_delta", text });
export const jsonDelta = (index: number, partial_json: string): Event =>
  delta(index, { type: "input_json_delta", partial_json });
export const text = (index: number, ...pieces: string[]): Event[] => [
  open(index, { type: "text", text: "" }),
  ...pieces.map((piece) => textDelta(index, piece)),
  close(index),
];
export const call = (index: number, id: string, ...pieces: string[]): Event[] => [
  open(index, { type: "tool_use", id, name: "{{tool:0}}", input: {} }),
  ...pieces.map((piece) => jsonDelta(index, piece)),
  close(index),
];
export const end = (stop_reason: string | null, usage: Event = { output_tokens: 9 }): Event[] => [
  { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
  { type: "message_stop" },
];
export const error = (type: string, message: string): Event => ({ type: "error", error: { type, message } });
