// Server-sent events out of text pieces of any size (WHATWG HTML 9.2.6), with a bound on one event.

export interface SseEvent {
  /** The `event:` field; empty when there was none. */
  readonly name: string;
  readonly data: string;
}

/** An event grew past the bound: no provider sends such a thing, so the stream is not what it claims to be. */
export class SseTooLarge extends Error {
  constructor(limit: number) {
    super(`one event of the stream is larger than ${limit} characters`);
    this.name = "SseTooLarge";
  }
}

export interface SseParser {
  push(piece: string): SseEvent[];
  /** The event that the end of the stream cut off before its blank line, if any. */
  end(): SseEvent | null;
}

const lineEnd = /\r\n|\n|\r/g;

export function createSseParser(options: { maxEventChars?: number } = {}): SseParser {
  const limit = options.maxEventChars ?? 16 * 1024 * 1024;
  let line = "";
  let name = "";
  let data: string[] = [];
  let size = 0;
  let endedOnCr = false;

  const dispatch = (): SseEvent | null => {
    const event = data.length === 0 ? null : { name, data: data.join("\n") };
    name = "";
    data = [];
    size = 0;
    return event;
  };
  const takeField = (text: string): void => {
    const colon = text.indexOf(":");
    const field = colon < 0 ? text : text.slice(0, colon);
    const rest = colon < 0 ? "" : text.slice(colon + 1);
    const value = rest.startsWith(" ") ? rest.slice(1) : rest;
    if (field === "data") data.push(value);
    else if (field === "event") name = value;
  };
  const grow = (text: string): void => {
    line += text;
    size += text.length;
    if (size > limit) throw new SseTooLarge(limit);
  };

  return {
    push(piece) {
      const events: SseEvent[] = [];
      // A CR that ended the piece before may be the first half of CRLF.
      let from = endedOnCr && piece.startsWith("\n") ? 1 : 0;
      if (piece !== "") endedOnCr = false;
      lineEnd.lastIndex = from;
      for (let match = lineEnd.exec(piece); match !== null; match = lineEnd.exec(piece)) {
        grow(piece.slice(from, match.index));
        from = match.index + match[0].length;
        const whole = line;
        line = "";
        if (whole !== "") takeField(whole);
        else {
          const event = dispatch();
          if (event !== null) events.push(event);
        }
        endedOnCr = match[0] === "\r" && from === piece.length;
      }
      grow(piece.slice(from));
      return events;
    },
    end() {
      if (line !== "") takeField(line);
      line = "";
      return dispatch();
    },
  };
}
