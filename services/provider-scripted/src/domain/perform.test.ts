import { describe, expect, it } from "vitest";
import { AnswerBuilder } from "./answer-builder.ts";
import { type Ending, perform } from "./perform.ts";
import { parseScript } from "./script.ts";

interface Played {
  ending: Ending;
  answer: AnswerBuilder;
  frames: [block: number, kind: string, text: string][];
  slept: number[];
}

async function play(
  text: string,
  options: { ordinal?: number; abortAfter?: number; wordMs?: number } = {},
): Promise<Played> {
  const script = parseScript(text);
  if (!script.ok) throw new Error(script.problem);
  const frames: Played["frames"] = [];
  const slept: number[] = [];
  const stop = new AbortController();
  const write = (block: number, kind: string, piece: string): void => {
    frames.push([block, kind, piece]);
    if (frames.length === options.abortAfter) stop.abort();
  };
  const answer = new AnswerBuilder({ write }, (index) => `call-${index}`);
  const ending = await perform(script.blocks[0] ?? [], {
    answer,
    signal: stop.signal,
    sleep: async (ms) => {
      slept.push(ms);
    },
    ordinal: async () => options.ordinal ?? 1,
    wordMs: options.wordMs ?? 0,
  });
  return { ending, answer, frames, slept };
}

describe("playing a block", () => {
  it("streams word by word, and two say lines follow each other in one block", async () => {
    const { answer, frames, ending } = await play("say Hello big\nsay  world");
    expect(frames).toEqual([
      [0, "text", "Hello "],
      [0, "text", "big"],
      [0, "text", " world"],
    ]);
    expect(answer.content).toEqual([{ type: "text", text: "Hello big world" }]);
    expect(answer.words).toBe(3);
    expect(ending).toEqual({ kind: "end" });
  });

  it("gives thinking, text and calls blocks of their own, in order", async () => {
    const { answer, frames } = await play('think hm\nsay a\ncall demo::echo {"text":"x"}\ncall demo::lookup\nsay b');
    expect(answer.content.map((block) => block.type)).toEqual([
      "thinking",
      "text",
      "function_call",
      "function_call",
      "text",
    ]);
    expect(frames.map(([block]) => block)).toEqual([0, 1, 2, 3, 4]);
    expect(frames[2]).toEqual([2, "function_call", '{"text":"x"}']);
    expect(answer.content[3]).toMatchObject({
      id: "call-1",
      provider_call_id: "call-1",
      function_id: "demo::lookup",
      arguments: {},
    });
  });

  it("streams numbers with the pause between them, as words apart from what stands beside them", async () => {
    const { answer, slept } = await play("say go\ntokens 4 7\nsay end");
    expect(answer.content).toEqual([{ type: "text", text: "go 1 2 3 4 end" }]);
    expect(slept).toEqual([7, 7, 7]);
    expect((await play("tokens 3 0")).answer.content).toEqual([{ type: "text", text: "1 2 3" }]);
  });

  it("waits where a delay stands, and paces words when asked", async () => {
    expect((await play("say a\ndelay 30\nsay b")).slept).toEqual([30]);
    expect((await play("say a b c", { wordMs: 4 })).slept).toEqual([4, 4]);
  });

  it("ends as the failing line says and keeps what was said", async () => {
    const failed = await play("say partial\nerror rate_limited too fast\nsay never");
    expect(failed.ending).toEqual({ kind: "failed", errorKind: "rate_limited", message: "too fast" });
    expect(failed.answer.content).toEqual([{ type: "text", text: "partial" }]);
    expect((await play("say a\ncut")).ending).toMatchObject({ kind: "failed", errorKind: "transient" });
  });

  it("fails the first attempts of a block and plays on after them", async () => {
    const script = "fail-first 2 transient\nsay ok";
    expect((await play(script, { ordinal: 2 })).ending).toMatchObject({ kind: "failed", errorKind: "transient" });
    expect((await play(script, { ordinal: 3 })).answer.content).toEqual([{ type: "text", text: "ok" }]);
  });

  it("stops at a cancel with what was said (I14)", async () => {
    const { ending, answer } = await play("tokens 1000 5\nsay never", { abortAfter: 3 });
    expect(ending).toEqual({ kind: "aborted" });
    expect(answer.content).toEqual([{ type: "text", text: "1 2 3" }]);
  });

  it("has no content for a block that only states its usage", async () => {
    expect((await play("usage 5 6")).answer.content).toEqual([]);
  });

  it("sends a long text in larger pieces and loses nothing of it", async () => {
    const text = "word ".repeat(40_000).trimEnd();
    const { answer, frames } = await play(`say ${text}`);
    expect(answer.content).toEqual([{ type: "text", text }]);
    expect(frames.length).toBeLessThan(1_000);
    expect(answer.words).toBe(40_000);
  });
});
