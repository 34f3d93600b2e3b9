// Token frames: order, offsets, surrogate pairs, and when the joined ones are stored.
import type { TokenFrame } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createFrameEmitter } from "./frame-emitter.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

interface Store {
  frames: readonly TokenFrame[];
  done: () => void;
  fail: (error: Error) => void;
}

function anEmitter(options: { stores?: "at once" | "by hand"; sessionId?: string | undefined } = {}) {
  const published: (TokenFrame & { subject: string })[] = [];
  const stored: Store[] = [];
  const warnings: string[] = [];
  const bus = {
    nc: {
      publish: (subject: string, data?: unknown) => {
        published.push({ subject, ...(JSON.parse(String(data)) as TokenFrame) });
      },
    },
    deltas: {
      append: (_sessionId: string, _messageId: string, frames: readonly TokenFrame[]) =>
        new Promise<void>((done, fail) => {
          stored.push({ frames, done, fail });
          if (options.stores !== "by hand") done();
        }),
    },
  };
  const logger = { warn: (message: string) => warnings.push(message) } as unknown as Logger;
  const sessionId = "sessionId" in options ? options.sessionId : "s-1";
  const emitter = createFrameEmitter({ bus, logger, sessionId, messageId: "m-1", turnId: "t-1" });
  const live = () => published.map(({ block, offset, text }) => [block, offset, text]);
  const kept = () => stored.map(({ frames }) => frames.map(({ block, offset, text }) => [block, offset, text]));
  return { emitter, published, stored, warnings, live, kept };
}

describe("frames", () => {
  it("go out at once, numbered from 0, with the place of their text in UTF-16 units", () => {
    const { emitter, published } = anEmitter();
    emitter.write(0, "thinking", "Hm");
    emitter.write(1, "text", "🌍 a");
    emitter.write(1, "text", "b");
    emitter.write(3, "function_call", "{}");
    const identity = { subject: "tokens.s-1", turn_id: "t-1", message_id: "m-1" };
    expect(published).toEqual([
      { ...identity, n: 0, block: 0, kind: "thinking", offset: 0, text: "Hm" },
      { ...identity, n: 1, block: 1, kind: "text", offset: 0, text: "🌍 a" },
      { ...identity, n: 2, block: 1, kind: "text", offset: 4, text: "b" },
      { ...identity, n: 3, block: 3, kind: "function_call", offset: 0, text: "{}" },
    ]);
  });

  it("never begin or end inside a surrogate pair", () => {
    const { emitter, live } = anEmitter();
    for (const piece of ["a\ud83c", "", "\udf0d", "\ud83c\udf0db\ud83d", "\ude00"]) emitter.write(0, "text", piece);
    expect(live()).toEqual([
      [0, 0, "a"],
      [0, 1, "🌍"],
      [0, 3, "🌍b"],
      [0, 6, "😀"],
    ]);
  });

  it("carry a lone half as a replacement of the same length, when its block ends", async () => {
    const { emitter, live } = anEmitter();
    emitter.write(0, "text", "a\ud83c");
    emitter.write(1, "text", "\udf0d");
    await emitter.flush();
    expect(live()).toEqual([
      [0, 0, "a"],
      [0, 1, "\ufffd"],
      [1, 0, "\ufffd"],
    ]);
  });

  it("of an earlier block after those of a later one are a defect", () => {
    const { emitter } = anEmitter();
    emitter.write(1, "text", "b");
    expect(() => emitter.write(0, "text", "a")).toThrow(RangeError);
  });

  it("count as streamed only with text or thinking among them", () => {
    const { emitter } = anEmitter();
    emitter.write(0, "function_call", "{}");
    expect(emitter.streamed).toBe(false);
    emitter.write(1, "text", "");
    expect(emitter.streamed).toBe(false);
    emitter.write(1, "text", "x");
    expect(emitter.streamed).toBe(true);
  });

  it("are none without a session", async () => {
    const { emitter, published, stored } = anEmitter({ sessionId: undefined });
    emitter.write(0, "text", "x");
    await emitter.flush();
    expect([published, stored, emitter.streamed]).toEqual([[], [], false]);
  });
});

describe("stored frames", () => {
  it("are joined for 100 ms", async () => {
    const { emitter, kept } = anEmitter();
    emitter.write(0, "text", "a");
    emitter.write(0, "text", "b");
    emitter.write(1, "text", "c");
    await vi.advanceTimersByTimeAsync(99);
    expect(kept()).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(kept()).toEqual([
      [
        [0, 0, "ab"],
        [1, 0, "c"],
      ],
    ]);
    emitter.write(1, "text", "d");
    await vi.advanceTimersByTimeAsync(100);
    expect(kept()[1]).toEqual([[1, 1, "d"]]);
  });

  it("are stored at once when 1 KiB waits", async () => {
    const { emitter, kept } = anEmitter();
    emitter.write(0, "text", "x".repeat(1_023));
    await vi.advanceTimersByTimeAsync(0);
    expect(kept()).toEqual([]);
    emitter.write(0, "text", "y");
    await vi.advanceTimersByTimeAsync(0);
    expect(kept()).toHaveLength(1);
  });

  it("wait for the store before them, joined", async () => {
    const { emitter, stored, kept } = anEmitter({ stores: "by hand" });
    emitter.write(0, "text", "a");
    await vi.advanceTimersByTimeAsync(100);
    for (const piece of ["b", "c", "d"]) emitter.write(0, "text", piece);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(kept()).toEqual([[[0, 0, "a"]]]);
    stored[0]?.done();
    await vi.advanceTimersByTimeAsync(100);
    expect(kept()[1]).toEqual([[0, 1, "bcd"]]);
  });

  it("are all there when flush resolves, and not before", async () => {
    const { emitter, stored, kept } = anEmitter({ stores: "by hand" });
    emitter.write(0, "text", "a");
    await vi.advanceTimersByTimeAsync(100);
    emitter.write(0, "text", "b");
    let isFlushed = false;
    const flushed = emitter.flush().then(() => {
      isFlushed = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(kept()).toEqual([[[0, 0, "a"]]]);
    stored[0]?.done();
    await vi.advanceTimersByTimeAsync(0);
    expect([isFlushed, kept()]).toEqual([false, [[[0, 0, "a"]], [[0, 1, "b"]]]]);
    stored[1]?.done();
    await flushed;
  });

  it("are tried again after a failure, which is said once and fails nothing", async () => {
    const { emitter, stored, kept, warnings } = anEmitter({ stores: "by hand" });
    emitter.write(0, "text", "a");
    await vi.advanceTimersByTimeAsync(100);
    stored[0]?.fail(new Error("no stream"));
    emitter.write(0, "text", "b");
    await vi.advanceTimersByTimeAsync(100);
    expect(kept()[1]).toEqual([
      [0, 0, "a"],
      [0, 1, "b"],
    ]);
    stored[1]?.fail(new Error("no stream"));
    const flushed = emitter.flush();
    for (let n = 2; n < 4; n++) {
      await vi.advanceTimersByTimeAsync(0);
      stored[n]?.fail(new Error("no stream"));
    }
    await flushed;
    expect(warnings).toEqual(["token frames cannot be stored"]);
  });
});
