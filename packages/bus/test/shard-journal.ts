// A journal with sessions of every kind that a move meets, and what a reader sees of it.
import {
  type Commit,
  foldCommits,
  headerNames,
  type StoredCommit,
  shardOf,
  streamNames,
  subjects,
} from "@flotilla/contracts";
import { aCommit, aTurnRecord, awaitingCall, userEntry } from "@flotilla/testkit";
import type { Bus } from "../src/index.ts";

export type Kind = "stopped" | "parked" | "waiting" | "late" | "fresh" | "large";
const kinds: readonly Kind[] = ["stopped", "parked", "waiting", "late", "fresh", "large"];

/** `count` sessions named `s-0`, `s-1` …, their messages between one another. */
export async function writeSessions(bus: Bus, count: number): Promise<Map<string, Kind>> {
  const sessions = new Map<string, Kind>();
  for (let n = 0; n < count; n++) sessions.set(`s-${n}`, kinds[n % kinds.length] ?? "stopped");
  await Promise.all([...sessions].map(([sid, kind]) => writeSession(bus, sid, kind)));
  return sessions;
}

async function writeSession({ journal }: Bus, sid: string, kind: Kind): Promise<void> {
  const input = async (name: "start" | "followup", id: string): Promise<number> => {
    const text = kind === "large" ? "x".repeat(50_000) : `text of ${id}`;
    const stored = await journal.publishInput(sid, name, id, { text }, { digest: `digest-${id}` });
    return stored.kind === "stored" ? stored.seq : 0;
  };
  const start = await input("start", "m-1");
  if (kind === "fresh") return;
  const writer = new CommitWriter(journal, sid);
  const anchor = await writer.write("step", {});
  await writer.write("run", { anchor, cursor: start, entries: [userEntry(`${sid}-e1`, "hello")] });
  const followup = await input("followup", "f-1");
  const text = kind === "large" ? "y".repeat(60_000) : "again";
  await writer.write("run", {
    anchor,
    cursor: followup,
    pending: [{ seq: followup, kind: "followup", id: "f-1" }],
    entries: [userEntry(`${sid}-e2`, text, `${sid}-e1`)],
  });
  const { call, event } = awaitingCall(`${sid}-call`, { order: "A1" });
  const open = { state: "function_awaiting_approval" as const, calls: [call] };
  const state = aTurnRecord({ session_id: sid, leaf: `${sid}-e2`, ...(kind === "parked" ? open : {}) });
  await writer.write("idle", {
    anchor,
    cursor: followup,
    pending: kind === "waiting" ? [{ seq: followup, kind: "followup", id: "f-1" }] : [],
    events: kind === "parked" ? [event] : [],
    state,
  });
  if (kind === "late") await input("start", "m-2");
}

class CommitWriter {
  readonly #journal: Bus["journal"];
  readonly #sid: string;
  #last = 0;
  #seqNo = 0;

  constructor(journal: Bus["journal"], sid: string) {
    this.#journal = journal;
    this.#sid = sid;
  }

  async write(kind: "step" | "run" | "idle", fields: Partial<Commit>): Promise<number> {
    this.#seqNo += 1;
    const commit = aCommit({ session_id: this.#sid, seq_no: this.#seqNo, ...fields });
    const result = await this.#journal.commit(kind, commit, { on: "commits", seq: this.#last });
    if (result.kind !== "stored") throw new Error("the commit was not stored");
    this.#last = result.seq;
    return this.#last;
  }
}

export interface Seen {
  readonly view: unknown;
  /** Subjects without their shard, ids and digests, oldest first. */
  readonly messages: readonly string[];
  /** For each reference in the newest commit, what it refers to. */
  readonly references: unknown;
  readonly untaken: readonly string[];
}

/** What a reader sees of a session, whatever the sequences are. */
export async function seenOf(bus: Bus, sid: string): Promise<Seen> {
  const { journal } = bus;
  const commits = await journal.readCommits(sid, 1);
  const inputs = await journal.readInputs(sid, 0);
  const tail = commits.at(-1)?.commit;
  const nameAt = (seq: number): string | null => {
    const input = inputs.find((candidate) => candidate.seq === seq);
    const commit = commits.find((candidate) => candidate.seq === seq);
    if (input !== undefined) return `${input.kind} ${input.id}`;
    return commit === undefined ? null : `${commit.kind} ${commit.commit.commit_id}`;
  };
  const { state, entries, outcomes } = foldCommits(sid, commits);
  return {
    view: { state, entries, outcomes: [...outcomes] },
    messages: await rawMessages(bus, sid),
    references: tail && {
      anchor: nameAt(tail.anchor),
      cursor: nameAt(tail.cursor),
      pending: tail.pending.map((item) => [nameAt(item.seq), item.kind, item.id]),
    },
    untaken: inputs.filter((input) => input.seq > (tail?.cursor ?? 0)).map((input) => `${input.kind} ${input.id}`),
  };
}

async function rawMessages({ jsm, journal }: Bus, sid: string): Promise<string[]> {
  const shard = shardOf(sid, journal.shards);
  const found = [...(await journal.readCommits(sid, 1)), ...(await journal.readInputs(sid, 0))].sort(
    (a, b) => a.seq - b.seq,
  );
  const lines: string[] = [];
  for (const { seq } of found) {
    const message = await jsm.direct.getMessage(streamNames.turnStep(shard), { seq });
    const id = message?.header.get("Nats-Msg-Id");
    const digest = message?.header.get(headerNames.digest);
    lines.push(`${subjects.inShard(message?.subject ?? "", 0)} ${id} ${digest}`);
  }
  return lines;
}

export function sequencesOf(commits: readonly StoredCommit[]): number[] {
  return commits.map(({ seq }) => seq);
}
