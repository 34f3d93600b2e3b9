// Moves the sessions of a stopped fleet to another number of turn-step shards. May be broken off anywhere and run again.
//
// M1 Nothing is taken away before every session that moves is whole in its new shard; then the number changes, and from
//    there on the move can only go forward. Until then asking for the old number takes the copies back.
// M2 The record of the move is written before the first change and removed after the last: no worker starts in between.
import { shardOf, streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { isWrongSequence } from "../journal-errors.ts";
import { requireShardNumber } from "../streams.ts";
import { differenceOf } from "./compare-sessions.ts";
import { copySession, notACopy } from "./copy-session.ts";
import { forEachOf } from "./for-each-of.ts";
import { type MoveRecord, migrateCommand, readMove } from "./move-record.ts";
import { type Place, requireIdle, requireNoWriters } from "./require-offline.ts";
import { readSession, sessionsIn } from "./shard-reader.ts";
import { existingShards, lastSequence, prepareStreams, settleStreams } from "./shard-streams.ts";

export interface MigrateOptions {
  readonly to: number;
  readonly report?: (line: string) => void;
  /** Contract: called before each change of the bus; what it throws breaks the move off, to be run again later. */
  readonly beforeChange?: (what: string) => void | Promise<void>;
}

export interface Migrated {
  readonly from: number;
  readonly to: number;
  readonly sessions: number;
  /** Sessions that have another shard now. */
  readonly moved: number;
  /** Messages that this run has copied. */
  readonly copied: number;
}

interface Session extends Place {
  readonly count: number;
}

/** Needs the operator's login. FLEET_RUNNING or SESSION_BUSY while it cannot be done. */
export async function migrateShards(nc: NatsConnection, options: MigrateOptions): Promise<Migrated> {
  requireShardNumber(options.to, "--to");
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  return new Migration(nc, jsm, options).run();
}

class Migration {
  readonly #nc: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;
  readonly #to: number;
  readonly #report: (line: string) => void;
  readonly #beforeChange: (what: string) => void | Promise<void>;

  constructor(nc: NatsConnection, jsm: JetStreamManager, options: MigrateOptions) {
    this.#nc = nc;
    this.#js = jetstream(nc);
    this.#jsm = jsm;
    this.#to = options.to;
    this.#report = options.report ?? (() => {});
    this.#beforeChange = options.beforeChange ?? (() => {});
  }

  async run(): Promise<Migrated> {
    const stored = await this.#storedShards();
    const open = await readMove(this.#jsm);
    await requireNoWriters(this.#nc, this.#jsm);
    if (open === null && stored.shards === this.#to) return this.#nothing(stored.shards);
    if (open !== null && stored.shards === open.from && this.#to === open.from) return this.#takeBack(open);
    if (open !== null && this.#to !== open.to) throw otherMove(open, stored.shards);
    const from = open?.from ?? stored.shards;
    const isCopied = stored.shards === this.#to;
    const sessions = isCopied ? [] : await this.#sessionsOf(from);
    await requireIdle(this.#jsm, from, sessions);
    const move = open ?? (await this.#begin(from));
    const moving = sessions.filter(({ sessionId }) => shardOf(sessionId, from) !== shardOf(sessionId, this.#to));
    let copied = 0;
    if (!isCopied) {
      this.#report(`copying ${moving.length} of ${sessions.length} sessions from ${from} to ${this.#to} shards`);
      copied = await this.#copy(move, moving);
      this.#report(`comparing ${moving.length} sessions`);
      await this.#verify(moving);
      await this.#requireUnchanged(from, sessions);
      await requireNoWriters(this.#nc, this.#jsm);
      await this.#change("set turn_shards", () => this.#storeShards(stored.revision));
    }
    await this.#finish(this.#to);
    const total = isCopied ? await this.#sessionsOf(this.#to) : sessions;
    return { from, to: this.#to, sessions: total.length, moved: movedOf(total, from, this.#to), copied };
  }

  async #nothing(shards: number): Promise<Migrated> {
    return { from: shards, to: shards, sessions: (await this.#sessionsOf(shards)).length, moved: 0, copied: 0 };
  }

  /** M1 */
  async #takeBack(move: MoveRecord): Promise<Migrated> {
    this.#report(`taking back the move to ${move.to} shards`);
    await this.#finish(move.from);
    return this.#nothing(move.from);
  }

  async #begin(from: number): Promise<MoveRecord> {
    const ends: number[] = [];
    for (let shard = 0; shard < from; shard++) ends.push(await lastSequence(this.#jsm, shard));
    const move: MoveRecord = { from, to: this.#to, floor: Math.max(...ends) };
    const expect = { lastSubjectSequence: 0 };
    await this.#change("begin", () => this.#js.publish(subjects.settingShardMove, JSON.stringify(move), { expect }));
    return move;
  }

  async #copy(move: MoveRecord, moving: readonly Session[]): Promise<number> {
    const receivers = new Set(moving.map(({ sessionId }) => shardOf(sessionId, move.to)));
    const deps = { nc: this.#nc, js: this.#js, jsm: this.#jsm, beforeChange: this.#beforeChange };
    await prepareStreams(deps, move, receivers);
    const held = new Map<number, Map<string, number>>();
    for (const shard of receivers) held.set(shard, await sessionsIn(this.#jsm, shard));
    const told = Math.ceil(moving.length / 10);
    let [copied, done] = [0, 0];
    await forEachOf(moving, async (session) => {
      const { sessionId } = session;
      const shard = shardOf(sessionId, move.to);
      const source = await readSession(this.#jsm, session);
      const count = held.get(shard)?.get(sessionId) ?? 0;
      const target = await readSession(this.#jsm, { shard, sessionId, count });
      copied += await copySession(deps, { sessionId, shard, source, target });
      if (++done % told === 0) this.#report(`copied ${done} of ${moving.length} sessions`);
    });
    return copied;
  }

  async #verify(moving: readonly Session[]): Promise<void> {
    await forEachOf(moving, async ({ sessionId, shard: before, count }) => {
      const shard = shardOf(sessionId, this.#to);
      const source = await readSession(this.#jsm, { shard: before, sessionId, count });
      const target = await readSession(this.#jsm, { shard, sessionId, count });
      const problem = differenceOf(sessionId, source, target, shard);
      if (problem !== null) throw notACopy(sessionId, shard, problem);
    });
  }

  /** Against a writer that no check has seen: what came after the copying would be lost. */
  async #requireUnchanged(from: number, sessions: readonly Session[]): Promise<void> {
    const before = new Map(sessions.map(({ sessionId, count }) => [sessionId, count]));
    const now = await this.#sessionsOf(from);
    const isSame = now.length === before.size && now.every(({ sessionId, count }) => before.get(sessionId) === count);
    if (isSame) return;
    throw new FlotillaError(
      "FLEET_RUNNING",
      "the journal has changed meanwhile; stop what writes to it and run this again",
    );
  }

  /** Leaves each session in its shard of `shards` alone; streams and consumers to match. */
  async #finish(shards: number): Promise<void> {
    const kept = (await existingShards(this.#jsm)).filter((shard) => shard < shards);
    for (const shard of kept) {
      const strangers = [...(await sessionsIn(this.#jsm, shard)).keys()].filter((id) => shardOf(id, shards) !== shard);
      if (strangers.length > 0)
        this.#report(`removing ${strangers.length} sessions from ${streamNames.turnStep(shard)}`);
      await forEachOf(strangers, (sessionId) =>
        this.#change(`purge ${sessionId}`, async () => {
          const filter = subjects.session(shard, sessionId);
          await this.#jsm.streams.purge(streamNames.turnStep(shard), { filter });
        }),
      );
    }
    await settleStreams({ nc: this.#nc, jsm: this.#jsm, beforeChange: this.#beforeChange }, shards);
    await this.#change("end", () =>
      this.#jsm.streams.purge(streamNames.settings, { filter: subjects.settingShardMove }),
    );
  }

  /** Every session where it belongs with this number of shards. */
  async #sessionsOf(shards: number): Promise<Session[]> {
    const sessions: Session[] = [];
    for (let shard = 0; shard < shards; shard++) {
      for (const [sessionId, count] of await sessionsIn(this.#jsm, shard)) {
        if (shardOf(sessionId, shards) === shard) sessions.push({ shard, sessionId, count });
      }
    }
    return sessions;
  }

  async #storedShards(): Promise<{ shards: number; revision: number }> {
    const query = { last_by_subj: subjects.settingShards };
    const found = await this.#jsm.streams.getMessage(streamNames.settings, query);
    if (found !== null) return { shards: Number(found.string()), revision: found.seq };
    throw new FlotillaError("STREAM_MISMATCH", "there is no journal here yet; `flotilla up` creates it");
  }

  async #storeShards(revision: number): Promise<void> {
    try {
      const expect = { lastSubjectSequence: revision };
      await this.#js.publish(subjects.settingShards, String(this.#to), { expect });
    } catch (error) {
      if (!isWrongSequence(error) || (await this.#storedShards()).shards !== this.#to) throw error;
    }
  }

  async #change(what: string, work: () => Promise<unknown>): Promise<void> {
    await this.#beforeChange(what);
    await work();
  }
}

function movedOf(sessions: readonly Session[], from: number, to: number): number {
  return sessions.filter(({ sessionId }) => shardOf(sessionId, from) !== shardOf(sessionId, to)).length;
}

function otherMove({ from, to }: MoveRecord, stored: number): FlotillaError {
  const back = stored === from ? `, or take it back with \`${migrateCommand} ${from}\`` : "";
  return new FlotillaError(
    "STREAM_MISMATCH",
    `a move from ${from} to ${to} shards has begun and not ended; end it with \`${migrateCommand} ${to}\`${back}`,
  );
}
