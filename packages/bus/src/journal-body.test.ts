import type { CallRecord, Commit, CommitEvent, LedgerRecord } from "@flotilla/contracts";
import { aCommit, aTurnRecord } from "@flotilla/testkit";
import { describe, expect, it } from "vitest";
import { commitLimitBytes, packCommit, packInput, unpackCommit, unpackInput } from "./journal-body.ts";
import type { Blobs } from "./types.ts";

function memoryBlobs(): Blobs & { readonly kept: Map<string, unknown> } {
  const kept = new Map<string, unknown>();
  const blobs = {
    kept,
    async putJson(value: unknown) {
      const name = `b${kept.size}`;
      kept.set(name, structuredClone(value));
      return { $blob: name, bytes: JSON.stringify(value).length };
    },
    async getJson({ $blob }: { $blob: string }) {
      if (!kept.has($blob)) throw new Error(`there is no body ${$blob}`);
      return structuredClone(kept.get($blob));
    },
  };
  return blobs as unknown as Blobs & { readonly kept: Map<string, unknown> };
}

async function roundTrip(commit: Commit): Promise<{ back: Commit; bytes: number; bodies: number }> {
  const blobs = memoryBlobs();
  const before = structuredClone(commit);
  const data = await packCommit(commit, blobs);
  expect(commit, "what is kept in memory stays whole").toEqual(before);
  const back = await unpackCommit(JSON.parse(Buffer.from(data).toString()), blobs);
  expect(back).toEqual(before);
  return { back, bytes: data.length, bodies: blobs.kept.size };
}

const callOf = (index: number): CallRecord => ({
  id: `t-0123456789abcdef0123-1-${index}`,
  index,
  function_id: "demo::echo",
  args_digest: `sha256:${"0".repeat(64)}`,
  status: "running",
  attempt: 1,
  key: `demo.${"s".repeat(64)}.t-0123456789abcdef0123.1.t${index}.1`,
});
const startOf = (index: number, args: unknown = {}): CommitEvent => ({
  type: "function_execution_start",
  function_call_id: callOf(index).id,
  function_id: "demo::echo",
  args,
});
const outcomeOf = (index: number, text: string): LedgerRecord => ({
  kind: "outcome",
  key: callOf(index).key ?? null,
  call_id: callOf(index).id,
  function_id: "demo::echo",
  status: "done",
  result: { content: [{ type: "text", text }], details: null },
  is_error: false,
  duration_ms: 1,
  at: 1,
});

describe("a commit's bytes", () => {
  it("are the plain record while it is small", async () => {
    expect(await roundTrip(aCommit({ session_id: "s" }))).toMatchObject({ bodies: 0 });
  });

  it("stay under the limit for 100 results of 30 KB", async () => {
    const ledger = Array.from({ length: 100 }, (_, index) => outcomeOf(index, `${index}`.padEnd(30_000, "x")));
    const { bytes } = await roundTrip(aCommit({ session_id: "s", ledger }));
    expect(bytes).toBeLessThan(commitLimitBytes);
  });

  it.each([200, 2_000])("stay under the limit for %i calls of one answer", async (count) => {
    const all = Array.from({ length: count }, (_, index) => index);
    const state = aTurnRecord({ session_id: "s", calls: all.map(callOf) });
    const commit = aCommit({
      session_id: "s",
      state,
      events: all.map((index) => startOf(index)),
      ledger: all.map((index) => outcomeOf(index, "x")),
    });
    expect((await roundTrip(commit)).bytes).toBeLessThan(commitLimitBytes);
  });

  it("stay under the limit for any number of waiting inputs and of named functions", async () => {
    const state = aTurnRecord({ session_id: "s" });
    state.request.functions = Array.from({ length: 20_000 }, (_, index) => `some::function-number-${index}`);
    const pending = Array.from({ length: 10_000 }, (_, seq) => ({ seq, kind: "followup" as const, id: `m-${seq}` }));
    expect((await roundTrip(aCommit({ session_id: "s", state, pending }))).bytes).toBeLessThan(commitLimitBytes);
  });

  it("keep what only looks like a reference apart from what is one", async () => {
    const lookalike = { $blob: "deadbeef", bytes: 1 };
    const ledger = [outcomeOf(0, "x")];
    Object.assign(ledger[0] ?? {}, { result: lookalike });
    await roundTrip(aCommit({ session_id: "s", events: [startOf(0, lookalike)], ledger }));
  });
});

describe("an input's bytes", () => {
  it.each([{ a: 1 }, { text: "x".repeat(100_000) }, { $blob: "deadbeef", bytes: 1 }])("come back", async (body) => {
    const blobs = memoryBlobs();
    expect(await unpackInput(await packInput(body, blobs), blobs)).toEqual(body);
  });
});
