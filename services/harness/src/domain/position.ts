// The grammar of event ids: a journal position, and while a message streams also how far its text has been sent (I10).
import { invalidInput } from "@flotilla/errors";

/** How far the text of a streaming message has been sent: the next unit is `offset` of `block`. */
export interface TextPosition {
  readonly messageId: string;
  readonly block: number;
  readonly offset: number;
}

/** Everything up to event `index` of the commit at `seq` has been sent. */
export interface Position {
  readonly seq: number;
  readonly index: number;
  readonly text: TextPosition | null;
}

export const startOfSession: Position = { seq: 0, index: 0, text: null };

// <commit sequence>.<index>, then optionally +<message_id>.<block>.<offset>; the digits stay below 2^53.
const pattern = /^(\d{1,15})\.(\d{1,9})(?:\+([A-Za-z0-9_-]{1,64})\.(\d{1,9})\.(\d{1,9}))?$/;

/** Reads an event id as a client sent it back; `0` is the start of the session. */
export function parsePosition(text: string, field = "last-event-id"): Position {
  if (text === "0") return startOfSession;
  const match = pattern.exec(text);
  if (match === null) {
    throw invalidInput("an event id looks like 12.0 or 12.0+message.0.5; 0 is the start of the session", field);
  }
  const [, seq, index, messageId, block, offset] = match;
  return {
    seq: Number(seq),
    index: Number(index),
    text: messageId === undefined ? null : { messageId, block: Number(block), offset: Number(offset) },
  };
}

export function formatPosition(position: Position): string {
  const base = `${position.seq}.${position.index}`;
  const { text } = position;
  return text === null ? base : `${base}+${text.messageId}.${text.block}.${text.offset}`;
}

/** Negative when `a` comes before `b`; positions inside one message compare by block and offset. */
export function comparePositions(a: Position, b: Position): number {
  return (
    a.seq - b.seq ||
    a.index - b.index ||
    (a.text?.block ?? -1) - (b.text?.block ?? -1) ||
    (a.text?.offset ?? -1) - (b.text?.offset ?? -1)
  );
}
