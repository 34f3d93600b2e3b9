// What a step writes durably: messages and bytes by stream, and whether that stays the same as a conversation grows (I12).
import { streamNames, subjects } from "@flotilla/contracts";
import { until } from "@flotilla/testkit";
import type { BenchFleet } from "./fleet.ts";
import { stepsPerTurn, toolCalls, turnBody } from "./model.ts";
import { EndOfTurn, nineStepTurn, Session } from "./session.ts";
import { rounded, sum } from "./statistics.ts";

export interface StreamWrites {
  /** Per turn of nine steps. */
  readonly messages: number;
  readonly bytes: number;
}

export interface WritesResult {
  readonly perTurn: Record<string, StreamWrites>;
  readonly messagesPerTurn: number;
  readonly bytesPerTurn: number;
  readonly bytesPerStep: number;
}

type Snapshot = Map<string, { lastSeq: number; bytes: number }>;

/** Not of turns: written by the clock, or at every start. */
const notOfTurns = new Set<string>([streamNames.registry, streamNames.settings]);

export async function measureWrites(fleet: BenchFleet, turns: number): Promise<WritesResult> {
  const before = await snapshot(fleet);
  for (let turn = 0; turn < turns; turn += 1) await nineStepTurn(fleet.url, turnBody("scripted", { tools: toolCalls }));
  return writesBetween(before, await quiet(fleet), turns);
}

function writesBetween(before: Snapshot, after: Snapshot, turns: number): WritesResult {
  const perTurn: Record<string, StreamWrites> = {};
  for (const [name, { lastSeq, bytes }] of after) {
    const start = before.get(name) ?? { lastSeq: 0, bytes: 0 };
    if (lastSeq === start.lastSeq) continue;
    perTurn[name] = {
      messages: rounded((lastSeq - start.lastSeq) / turns),
      bytes: rounded((bytes - start.bytes) / turns),
    };
  }
  const all = Object.values(perTurn);
  const bytesPerTurn = sum(all.map(({ bytes }) => bytes));
  return {
    perTurn,
    messagesPerTurn: rounded(sum(all.map(({ messages }) => messages))),
    bytesPerTurn: rounded(bytesPerTurn),
    bytesPerStep: rounded(bytesPerTurn / stepsPerTurn),
  };
}

async function snapshot({ jsm }: BenchFleet): Promise<Snapshot> {
  const found: Snapshot = new Map();
  for await (const { config, state } of jsm.streams.list()) {
    if (!notOfTurns.has(config.name)) found.set(config.name, { lastSeq: state.last_seq, bytes: state.bytes });
  }
  return found;
}

/** What is written after the last event (a snapshot, say) still belongs to the turn. */
async function quiet(fleet: BenchFleet): Promise<Snapshot> {
  let last = await snapshot(fleet);
  let since = performance.now();
  await until(
    async () => {
      const next = await snapshot(fleet);
      if (JSON.stringify([...next]) !== JSON.stringify([...last])) since = performance.now();
      last = next;
      return performance.now() - since > 300;
    },
    { timeoutMs: 10_000, what: "the streams are quiet", intervalMs: 50 },
  );
  return last;
}

export interface GrowthResult {
  /** Steps that the session had before the measured turn. */
  readonly atStep: number;
  readonly bytesPerStep: number;
  readonly journalBytesPerStep: number;
  readonly largestCommit: number;
  readonly turnMs: number;
}

/** The same turn at different ages of one session. */
export async function measureGrowth(fleet: BenchFleet, ages: readonly number[]): Promise<GrowthResult[]> {
  const session = new Session(fleet.url);
  let steps = 0;
  let listener = new EndOfTurn(0);
  const turn = async (tools: number): Promise<number> => {
    listener = new EndOfTurn(tools);
    const startedAt = performance.now();
    await session.start(turnBody("scripted", { tools }));
    if (steps === 0) await session.open((type, data) => listener.onEvent(type, data));
    steps += 2 * tools + 1;
    return (await listener.at) - startedAt;
  };
  const results: GrowthResult[] = [];
  for (const age of ages) {
    while (steps < age) await turn(Math.max(0, Math.min(100, Math.ceil((age - steps - 1) / 2))));
    const before = await quiet(fleet);
    const commits = watchCommits(fleet, session.id);
    const atStep = steps;
    const turnMs = rounded(await turn(toolCalls));
    const { bytesPerStep, perTurn } = writesBetween(before, await quiet(fleet), 1);
    const journal = Object.entries(perTurn).filter(([name]) => name.startsWith("TURN_STEP_"));
    const journalBytes = sum(journal.map(([, { bytes }]) => bytes));
    const journalBytesPerStep = rounded(journalBytes / stepsPerTurn);
    results.push({ atStep, bytesPerStep, journalBytesPerStep, largestCommit: commits.stop(), turnMs });
  }
  session.close();
  return results;
}

function watchCommits({ nc }: BenchFleet, sessionId: string): { stop: () => number } {
  let largest = 0;
  const subscription = nc.subscribe(subjects.liveCommits, {
    callback: (_, message) => {
      if (message.subject.split(".")[3] === sessionId) largest = Math.max(largest, message.data.length);
    },
  });
  return {
    stop: () => {
      subscription.unsubscribe();
      return largest;
    },
  };
}
