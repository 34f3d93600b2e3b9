// What the session worker's tests share: a journal to write to, and the worker's parts on real NATS and Redis.
import { type Bus, connectBus } from "@flotilla/bus";
import type { Commit, CommitKind, FunctionContract, StoredCommit } from "@flotilla/contracts";
import { connectState, type State } from "@flotilla/state";
import type { Logger } from "@flotilla/telemetry";
import {
  aCommit,
  aTurnRecord,
  type StartedNats,
  type StartedRedis,
  startNats,
  startRedis,
  userEntry,
} from "@flotilla/testkit";
import type { HandlerContext, Implementation } from "@flotilla/worker";
import { Redis } from "ioredis";
import type { z } from "zod";
import { createProjector, type Projector, type ProjectorDeps } from "../src/adapters/projector.ts";
import { createRepair, type Repair } from "../src/adapters/repair.ts";

export const silent: Logger = {
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  with: () => silent,
};

export interface Replica {
  readonly bus: Bus;
  readonly state: State;
  readonly repair: Repair;
  readonly projector: Projector;
  /** Commits this replica wrote. */
  readonly counts: Map<string, number>;
  stop(): Promise<void>;
}

/** A session worker's parts, connected as the `session` user. */
export async function startReplica(
  servers: { nats: StartedNats; redis: StartedRedis },
  over: Partial<ProjectorDeps> & { instance?: string } = {},
): Promise<Replica> {
  const { instance = "session-0", ...options } = over;
  const bus = await connectBus({ url: servers.nats.urlFor("session"), worker: "session", instance, logger: silent });
  const state = connectState({ url: servers.redis.url, logger: silent });
  const repair = createRepair({ bus, state, logger: silent });
  const counts = new Map<string, number>();
  const onProjected = (outcome: string): void => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const projector = createProjector({ bus, state, repair, logger: silent, onProjected, ...options });
  await projector.start();
  const stop = async (): Promise<void> => {
    await projector.stop();
    await state.close();
    await bus.close();
  };
  return { bus, state, repair, projector, counts, stop };
}

export interface Servers {
  nats: StartedNats;
  redis: StartedRedis;
  /** With the operator's login: writes commits as an orchestrator would. */
  operator: Bus;
  stop(): Promise<void>;
}

export async function startServers(options: { shards?: number } = {}): Promise<Servers> {
  const [nats, redis] = await Promise.all([startNats(options), startRedis()]);
  const operator = await connectBus({ url: nats.url, worker: "operator", instance: "test", logger: silent });
  const stop = async (): Promise<void> => {
    await operator.close();
    await Promise.all([nats.stop(), redis.stop()]);
  };
  return { nats, redis, operator, stop };
}

/** Writes a session's commits one after the other. */
export function journalOf(bus: Bus, sessionId: string) {
  let tail = 0;
  let seqNo = 0;
  return {
    get tail() {
      return tail;
    },
    async commit(kind: CommitKind, over: Partial<Commit> = {}): Promise<StoredCommit> {
      seqNo += 1;
      const commit = aCommit({ session_id: sessionId, seq_no: seqNo, at: 1_000 + seqNo, ...over });
      const result = await bus.journal.commit(kind, commit, { on: "commits", seq: tail });
      if (result.kind !== "stored") throw new Error("another writer was first");
      tail = result.seq;
      return { seq: tail, kind, commit };
    },
  };
}

/** A whole short turn: three commits, two entries. */
export async function writeTurn(bus: Bus, sessionId: string, at = 1_000, workspace = "default"): Promise<void> {
  const journal = journalOf(bus, sessionId);
  const state = (over: object) =>
    aTurnRecord({ session_id: sessionId, workspace, updated_at_ms: at, usage: { cost_microusd: 250_000 }, ...over });
  await journal.commit("step", { state: null, at, workspace });
  const entries = [
    userEntry(`${sessionId}-e1`, "first"),
    userEntry(`${sessionId}-e2`, `last of ${sessionId}`, `${sessionId}-e1`),
  ];
  await journal.commit("run", {
    state: state({ state: "assistant_streaming", entry_count: 2 }),
    entries,
    at,
    workspace,
  });
  await journal.commit("idle", { state: state({ entry_count: 2, leaf: `${sessionId}-e2` }), at, workspace });
}

/** The content of the projection without generation names; two generations at once are an error. */
export async function dump(url: string): Promise<Record<string, unknown>> {
  const redis = new Redis(url);
  try {
    const result: Record<string, unknown> = {};
    for (const key of (await redis.keys("flotilla:p????????:*")).sort()) {
      const name = key.replace(/^flotilla:p[0-9a-f]{8}:/, "");
      if (name in result) throw new Error(`two generations hold ${name}`);
      const isSet = (await redis.type(key)) === "zset";
      result[name] = isSet
        ? await redis.zrangebyscore(key, "-inf", "+inf", "WITHSCORES")
        : Object.fromEntries(Object.entries(await redis.hgetall(key)).sort());
    }
    return result;
  } finally {
    redis.disconnect();
  }
}

/** Calls a function as the runtime would: request and response pass their schemas. */
export async function invoke<I extends z.ZodType, O extends z.ZodType>(
  functions: readonly Implementation[],
  contract: FunctionContract<I, O>,
  payload: z.input<I>,
  over: Partial<HandlerContext> = {},
): Promise<z.output<O>> {
  const found = functions.find((item) => item.contract.id === contract.id);
  if (found === undefined) throw new Error(`${contract.id} is not implemented`);
  const context: HandlerContext = {
    signal: new AbortController().signal,
    deadline: Date.now() + 10_000,
    logger: silent,
    caller: "test",
    functionId: contract.id,
    sessionId: undefined,
    messageId: undefined,
    turnId: undefined,
    callId: undefined,
    workspace: "default",
    idempotencyKey: undefined,
    epoch: 0,
    attempt: 1,
    call: () => Promise.reject(new Error("this handler calls nobody")),
    ...over,
  };
  return contract.response.parse(await found.handle(context, contract.request.parse(payload) as never));
}
