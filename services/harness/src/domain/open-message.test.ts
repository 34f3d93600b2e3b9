import { describe, expect, it } from "vitest";
import { aFrame, anAssistant, aText } from "../../test/builders.ts";
import { OpenMessage, type Piece } from "./open-message.ts";

const said = (pieces: readonly Piece[]): string => pieces.map((piece) => piece.text).join("");

describe("the text of a streaming message", () => {
  it("passes frames on at once while they are in order", () => {
    const open = new OpenMessage("m");
    expect(open.live(aFrame("m", 0, 0, 0, "one "))).toEqual([{ block: 0, kind: "text", offset: 0, text: "one " }]);
    expect(open.live(aFrame("m", 1, 0, 4, "two"))).toEqual([{ block: 0, kind: "text", offset: 4, text: "two" }]);
    expect(open.position).toEqual({ messageId: "m", block: 0, offset: 7 });
  });

  it("holds a frame beyond a gap until a stored chunk closes it", () => {
    const open = new OpenMessage("m");
    expect(open.live(aFrame("m", 2, 0, 8, "three"))).toEqual([]);
    expect(open.isHolding).toBe(true);
    expect(said(open.stored([aFrame("m", 0, 0, 0, "one two ")], true))).toBe("one two three");
  });

  it("sends only the part of an overlapping chunk that is new", () => {
    const open = new OpenMessage("m");
    open.live(aFrame("m", 0, 0, 0, "one "));
    expect(open.stored([aFrame("m", 0, 0, 0, "one two")], true)).toEqual([
      { block: 0, kind: "text", offset: 4, text: "two" },
    ]);
  });

  it("does not begin the next block while the end of the open one may be missing", () => {
    const open = new OpenMessage("m");
    open.live(aFrame("m", 0, 0, 0, "first"));
    expect(open.live(aFrame("m", 2, 1, 0, "second"))).toEqual([]);
    expect(said(open.stored([aFrame("m", 0, 0, 0, "first block"), aFrame("m", 0, 1, 0, "sec")], true))).toBe(
      " blocksecond",
    );
  });

  it("begins the next block on two frames in a row", () => {
    const open = new OpenMessage("m");
    open.live(aFrame("m", 0, 0, 0, "first"));
    expect(open.live(aFrame("m", 1, 2, 0, "third block"))).toEqual([
      { block: 2, kind: "text", offset: 0, text: "third block" },
    ]);
  });

  it("never cuts a surrogate pair, whoever cut it before", () => {
    const open = new OpenMessage("m");
    const rocket = "🚀";
    expect(said(open.live(aFrame("m", 0, 0, 0, `a${rocket.slice(0, 1)}`)))).toBe("a");
    expect(open.live(aFrame("m", 1, 0, 2, `${rocket.slice(1)}b`))).toEqual([
      { block: 0, kind: "text", offset: 1, text: `${rocket}b` },
    ]);
  });

  it("continues at the position a client came with", () => {
    const open = new OpenMessage("m", { messageId: "m", block: 1, offset: 2 });
    const pieces = open.stored([aFrame("m", 0, 0, 0, "old"), aFrame("m", 0, 1, 0, "second")], true);
    expect(pieces).toEqual([{ block: 1, kind: "text", offset: 2, text: "cond" }]);
  });

  it("completes text and thinking from the final message and call blocks from stored frames", () => {
    const open = new OpenMessage("m");
    open.live(aFrame("m", 0, 0, 0, "he"));
    open.stored([{ ...aFrame("m", 0, 1, 0, '{"a":1}'), kind: "function_call" }], false);
    const call = { type: "function_call", id: "c", function_id: "demo::echo", arguments: { a: 1 } } as const;
    const pieces = open.finish(anAssistant([aText("hello"), call, { type: "thinking", text: "hm" }]));
    expect(pieces).toEqual([
      { block: 0, kind: "text", offset: 2, text: "llo" },
      { block: 1, kind: "function_call", offset: 0, text: '{"a":1}' },
      { block: 2, kind: "thinking", offset: 0, text: "hm" },
    ]);
  });

  it("ignores a frame that was already passed on", () => {
    const open = new OpenMessage("m");
    open.live(aFrame("m", 0, 0, 0, "one"));
    expect(open.live(aFrame("m", 0, 0, 0, "one"))).toEqual([]);
  });
});
