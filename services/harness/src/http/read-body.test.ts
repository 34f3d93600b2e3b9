import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readJsonBody } from "./read-body.ts";

function read(text: string | Buffer, limit = 1_000, headers: Record<string, string> = {}): Promise<unknown> {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / 100) }, (_, index) =>
    bytes.subarray(index * 100, index * 100 + 100),
  );
  return readJsonBody(Readable.from(pieces), { headers } as IncomingMessage, limit);
}

describe("a JSON body", () => {
  it("is put together from its pieces, and undefined when empty", async () => {
    expect(await read(JSON.stringify({ text: "é🚀".repeat(50) }))).toEqual({ text: "é🚀".repeat(50) });
    expect(await read("")).toBeUndefined();
  });

  it("is refused over the limit, by what was announced or by what came", async () => {
    const tooLarge = { code: "PAYLOAD_TOO_LARGE" };
    await expect(read(JSON.stringify("x".repeat(2_000)))).rejects.toMatchObject(tooLarge);
    await expect(read("{}", 1_000, { "content-length": "5000" })).rejects.toMatchObject(tooLarge);
    await expect(read(JSON.stringify("x".repeat(900_000)))).rejects.toMatchObject(tooLarge);
  });

  it.each(["{", "nope", '{"a":1,}', "[".repeat(300) + "]".repeat(300)])("is refused when it is %j", async (text) => {
    await expect(read(text)).rejects.toMatchObject({ code: "INVALID_INPUT", field: "body" });
  });

  it("does not take brackets inside strings for nesting", async () => {
    const text = JSON.stringify({ text: '"[[[\\'.repeat(100) });
    expect(await read(text, 10_000)).toEqual(JSON.parse(text));
  });

  it("is refused when it is not UTF-8", async () => {
    await expect(read(Buffer.from([0x22, 0xff, 0xfe, 0x22]))).rejects.toMatchObject({ code: "INVALID_INPUT" });
  });
});
