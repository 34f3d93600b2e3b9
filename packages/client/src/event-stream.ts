// Server-sent events: bytes to fields, as the HTML standard says.

export interface RawEvent {
  /** Last id seen so far; empty when there was none. */
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Yields null for a comment: a sign of life. */
export async function* parseEventStream(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<RawEvent | null> {
  const fields = { id: "", event: "", data: [] as string[] };
  for await (const line of linesOf(bytes)) {
    if (line === "") {
      if (fields.data.length > 0)
        yield { id: fields.id, event: fields.event || "message", data: fields.data.join("\n") };
      fields.event = "";
      fields.data = [];
    } else if (line.startsWith(":")) {
      yield null;
    } else {
      takeField(line, fields);
    }
  }
}

function takeField(line: string, fields: { id: string; event: string; data: string[] }): void {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") fields.data.push(value);
  else if (name === "event") fields.event = value;
  else if (name === "id" && !value.includes("\0")) fields.id = value;
}

/** Lines end with CRLF, LF or CR; a CR at the end of a chunk may be half of a CRLF. */
async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true });
    const hasOpenCr = rest.endsWith("\r");
    const lines = (hasOpenCr ? rest.slice(0, -1) : rest).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? "") + (hasOpenCr ? "\r" : "");
    yield* lines;
  }
}
