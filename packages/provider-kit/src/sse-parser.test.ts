// The SSE parser: every way of cutting and spelling the same events.
import { describe, expect, it } from "vitest";
import { createSseParser, SseTooLarge } from "./sse-parser.ts";

function parse(text: string, size = text.length) {
  const parser = createSseParser();
  const events = [];
  for (let at = 0; at < text.length; at += Math.max(1, size))
    events.push(...parser.push(text.slice(at, at + Math.max(1, size))));
  return [...events, parser.end()].flatMap((event) => (event === null ? [] : [[event.name, event.data]]));
}

describe("the SSE parser", () => {
  it.each(["\n", "\r\n", "\r"])("reads fields with line ends %j, cut into pieces of any size", (eol) => {
    const text = [
      ": hello",
      "event: one",
      "data: a",
      "data:b",
      "id: 7",
      "",
      "",
      "data",
      "",
      "retry: 5",
      "",
      "data:  c: d ",
      "",
      "",
    ].join(eol);
    for (let size = 1; size <= text.length; size++) {
      expect(parse(text, size)).toEqual([
        ["one", "a\nb"],
        ["", ""],
        ["", " c: d "],
      ]);
    }
  });

  it("gives what the end cut off before its blank line", () => {
    expect(parse("data: a\n\ndata: [DONE]")).toEqual([
      ["", "a"],
      ["", "[DONE]"],
    ]);
    expect(parse("data: a\n")).toEqual([["", "a"]]);
    expect(parse("event: x\n")).toEqual([]);
  });

  it("forgets the name of an event without data", () => {
    expect(parse("event: x\n\ndata: a\n\n")).toEqual([["", "a"]]);
  });

  it("refuses an event beyond its bound, also one of many small lines, and counts each event anew", () => {
    const parser = createSseParser({ maxEventChars: 20 });
    for (let n = 0; n < 10; n++) expect(parser.push("data: 0123456789\n\n")).toHaveLength(1);
    expect(() => parser.push(`data: ${"x".repeat(21)}`)).toThrow(SseTooLarge);
    const other = createSseParser({ maxEventChars: 20 });
    expect(() => other.push("data: a\n".repeat(10))).toThrow(SseTooLarge);
  });
});
