// The tests that every provider worker passes: its scenarios against what is expected, their frames, and the same bytes cut otherwise.
import { until } from "@flotilla/testkit";
import type { WorkerDefinition } from "@flotilla/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expected, scenarios, upstream } from "./load.ts";
import { differences } from "./match.ts";
import { play, requestsOf, withScenarios } from "./play.ts";
import { cutAtRandom } from "./rechunk.ts";
import type { Scenario, Upstream } from "./upstream.mjs";

export interface SuiteOptions {
  readonly provider: string;
  readonly definition: WorkerDefinition;
  /** Environment of the worker for a fake upstream at this address. */
  readonly env: (url: string) => Record<string, string>;
}

const variantsPerScenario = 24;

export function describeScenarios(suite: SuiteOptions): void {
  const own = scenarios.scenarios.filter(({ provider }) => provider === suite.provider);
  const named = own.map((scenario) => [scenario.name, scenario] as const);
  const whole = named.filter(([, { reply }]) => reply?.events !== undefined && reply.end === undefined);

  const playAt = async (scenario: Scenario, at: Upstream) => {
    const stop = new AbortController();
    const isAbort = expected[scenario.name]?.stop_reason === "aborted";
    const played = await play(scenario.call, {
      definition: suite.definition,
      functionId: `provider::${suite.provider}::stream`,
      env: suite.env(at.url),
      catalog: scenarios.catalog,
      signal: stop.signal,
      onFrame: (frame) => {
        if (isAbort && frame.kind === "text") stop.abort();
      },
    });
    const isClosed = () => requestsOf(at, scenario.name).at(-1)?.closed_early === true;
    if (isAbort) await until(isClosed, { timeoutMs: 2_000, what: "the upstream to see the connection close" });
    return { ...played, requests: requestsOf(at, scenario.name) };
  };

  describe(`scenarios of ${suite.provider}`, () => {
    let server: Upstream;
    beforeAll(async () => {
      server = await upstream.startUpstream();
    });
    afterAll(() => server.close());

    it("has some", () => {
      expect(own.length).toBeGreaterThan(3);
    });

    it.each(named)("%s ends as expected, with one request that the vendor would take", async (name, scenario) => {
      server.reset();
      const played = await playAt(scenario, server);
      expect(differences(expected[name] ?? { rules: ["missing"] }, played)).toEqual([]);
      expect(played.requests.map(({ violations }) => violations)).toEqual([[]]);
    });

    it.each(named)("%s streams exactly the text of its blocks, in order, and stores all of it", async (_, scenario) => {
      const { message, frames, stored, streamed } = await playAt(scenario, server);
      const live = joined(frames);
      expect(joined(stored)).toEqual(live);
      expect(streamed).toBe(frames.some(({ kind }) => kind !== "function_call"));
      const prose = message.content.flatMap((block, index) => ("text" in block ? [[index, block.text] as const] : []));
      for (const [index, text] of prose) expect(live.get(index)).toBe(text);
    });

    it.each(whole)("%s gives the same message however its bytes are cut and spelt", async (_, scenario) => {
      const { message: plain } = await playAt(scenario, server);
      for (const [seed, variant] of cutAtRandom(scenario, variantsPerScenario).entries()) {
        const other = await upstream.startUpstream({ scenarios: withScenarios(scenarios, [variant]) });
        try {
          const { message } = await playAt(scenario, other);
          expect({ seed, ...message, timestamp: 0 }).toEqual({ seed, ...plain, timestamp: 0 });
        } finally {
          await other.close();
        }
      }
    });
  });
}

/** Frames by block; a gap, an overlap or a step back fails. */
function joined(frames: readonly { block: number; offset: number; text: string }[]): Map<number, string> {
  const texts = new Map<number, string>();
  let last = 0;
  for (const { block, offset, text } of frames) {
    const before = texts.get(block) ?? "";
    expect(block).toBeGreaterThanOrEqual(last);
    expect(offset).toBe(before.length);
    texts.set(block, before + text);
    last = block;
  }
  return texts;
}
