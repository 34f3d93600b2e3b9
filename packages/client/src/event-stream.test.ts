// Behaviour of the parser of server-sent events.
import { describe, expect, it } from "vitest";
import { parseEventStream, type RawEvent } from "./event-stream.ts";

async function parse(...chunks: (string | Uint8Array)[]): Promise<(RawEvent | null)[]> {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) yield typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
  }
  return Array.fromAsync(parseEventStream(bytes()));
}

describe("parseEventStream", () => {
  it("yields id, event and data, and joins several data lines", async () => {
    expect(await parse("id: 1\nevent: a\ndata: x\ndata:y\n\ndata: z\n\n")).toEqual([
      { id: "1", event: "a", data: "x\ny" },
      { id: "1", event: "message", data: "z" },
    ]);
  });

  it("does not care where chunks end, also inside a character and between CR and LF", async () => {
    const text = "id: 7\r\nevent: e\r\ndata: añb😀\r\n\r\n";
    const bytes = new TextEncoder().encode(text);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      expect(await parse(bytes.slice(0, cut), bytes.slice(cut))).toEqual([{ id: "7", event: "e", data: "añb😀" }]);
    }
  });

  it("tells comments apart from events, and drops an event that was cut off", async () => {
    expect(await parse(": ping\n\n", "data: whole\n\n", "data: half")).toEqual([
      null,
      { id: "", event: "message", data: "whole" },
    ]);
  });
});
