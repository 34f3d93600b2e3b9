// A look-up that begins beside the claim of an effect, on a real nats-server.
import { type StartedNats, startNats } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { implementPrepared } from "../src/index.ts";
import { codeOf, connectCaller, keyOf, startWorker, work } from "./support.ts";

let nats: StartedNats;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats.stop());

/** Answers what it looked up; counts both. */
function aLookUp(look: () => Promise<string> = async () => "found") {
  const counts = { looked: 0, handled: 0 };
  const implementation = implementPrepared(
    work,
    () => {
      counts.looked += 1;
      return look();
    },
    async (_context, _request, prepared) => {
      counts.handled += 1;
      return { prepared: await prepared };
    },
  );
  return { counts, implementation };
}

describe("a function with a look-up of its own", () => {
  it.each([
    ["with", { idempotencyKey: keyOf("m-with") }],
    ["without", {}],
  ])("looks up once and gives the handler what was found, %s a key", async (_, options) => {
    const { counts, implementation } = aLookUp();
    await using _worker = await startWorker(nats, { functions: [implementation] });
    await using bus = await connectCaller(nats);
    expect(await bus.call(work, {}, options)).toEqual({ prepared: "found" });
    expect(counts).toEqual({ looked: 1, handled: 1 });
  });

  it("runs its handler once for a key, whatever was looked up beside it (I4)", async () => {
    const { counts, implementation } = aLookUp();
    await using _worker = await startWorker(nats, { functions: [implementation] });
    await using bus = await connectCaller(nats);
    const options = { idempotencyKey: keyOf("m-twice") };
    expect(await bus.call(work, {}, options)).toEqual(await bus.call(work, {}, options));
    expect(counts.handled).toBe(1);
  });

  it("fails with the look-up's error, which its record keeps", async () => {
    const { implementation } = aLookUp(() => Promise.reject(new Error("nothing there")));
    await using _worker = await startWorker(nats, { functions: [implementation] });
    await using bus = await connectCaller(nats);
    const key = keyOf("m-fails");
    expect(await codeOf(bus.call(work, {}, { idempotencyKey: key }))).toBe("INTERNAL");
    expect((await bus.outcomes.read(key, { fresh: true }))?.record).toMatchObject({ status: "failed" });
  });
});
