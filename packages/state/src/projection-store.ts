// The writer's side of the projection: guarded writes, the repair lock, generations and checkpoints.
import type { Connection } from "./connection.ts";
import { keys } from "./keys.ts";
import { script } from "./script.ts";
import * as lua from "./scripts.ts";
import type { Applied, ProjectionStatus, ProjectionStore, ProjectionWrite } from "./types.ts";

const applyScript = script(lua.apply);
const inspectScript = script(lua.inspect);
const renewScript = script(lua.renew);
const unlockScript = script(lua.unlock);
const beginScript = script(lua.begin);
const finishScript = script(lua.finish);
const advanceScript = script(lua.advance);

const marker = [keys.projection];
const markerAndLock = [keys.projection, keys.repairLock];
const throughPrefix = "through:";

export function createProjectionStore(connection: Connection): ProjectionStore {
  const { redis } = connection;
  const advance = async (runId: string, through: ReadonlyMap<number, number>): Promise<boolean> =>
    (await advanceScript(connection, marker, [runId, ...throughFields(through)])) === 1;
  return {
    async apply(write, onlyBuilding = "") {
      return appliedOf(await applyScript(connection, marker, argumentsOf(write, onlyBuilding)));
    },
    async inspect(journal) {
      return statusOf(await inspectScript(connection, markerAndLock, []), journal);
    },
    async lock(token, ttlMs) {
      return (await connection.run(() => redis.set(keys.repairLock, token, "PX", ttlMs, "NX"))) === "OK";
    },
    async renew(token, ttlMs) {
      return (await renewScript(connection, [keys.repairLock], [token, ttlMs])) === 1;
    },
    async unlock(token) {
      await unlockScript(connection, [keys.repairLock], [token]);
    },
    async begin(token, generation, { dropCurrent }) {
      const args = [token, generation, dropCurrent ? 1 : 0];
      const runId = String(await beginScript(connection, markerAndLock, args));
      return runId === "" ? null : { runId };
    },
    async finish({ token, generation, runId, journal, through }) {
      const args = [token, generation, runId, journal, ...throughFields(through)];
      return (await finishScript(connection, markerAndLock, args)) === 1;
    },
    confirm: (runId, through) => advance(runId, through),
    checkpoint: (through) => advance("", through),
    sweep: () => sweep(connection),
    async countSessions() {
      const current = await connection.run(() => redis.hget(keys.projection, "current"));
      if (current === null) return 0;
      return connection.run(() => redis.zcard(`${keys.root}${current}:${keys.scope.sessions}`));
    },
  };
}

function argumentsOf(write: ProjectionWrite, onlyBuilding: string): (string | number)[] {
  const { scope } = keys;
  const { sessionId } = write;
  return [
    keys.root,
    onlyBuilding,
    write.seq,
    write.at,
    sessionId,
    scope.turnState(sessionId),
    scope.approvals,
    scope.sessions,
    scope.sessionsOf(write.workspace),
    scope.entries(sessionId),
    write.row.updated_at,
    JSON.stringify(write.row),
    write.awaiting.join(" "),
    write.summary === undefined ? 0 : 1,
    write.summary ?? "",
    write.requested.length,
    ...write.requested.flatMap((approval) => [approval.function_call_id, JSON.stringify(approval)]),
    ...write.entries.flatMap((entry) => [entry.id, JSON.stringify(entry)]),
  ];
}

function appliedOf(reply: unknown): Applied {
  if (reply === lua.lost) return "lost";
  if (reply === lua.superseded) return "superseded";
  return reply === 1 ? "applied" : "older";
}

function throughFields(through: ReadonlyMap<number, number>): (string | number)[] {
  return [...through].flatMap(([shard, seq]) => [`${throughPrefix}${shard}`, seq]);
}

function statusOf(reply: unknown, journal: string): ProjectionStatus {
  const [holder, runId, flat] = reply as [string, string, string[]];
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(flat[i] ?? "", flat[i + 1] ?? "");
  const through = new Map<number, number>();
  for (const [field, value] of fields) {
    if (field.startsWith(throughPrefix)) through.set(Number(field.slice(throughPrefix.length)), Number(value));
  }
  return {
    condition: conditionOf(fields, runId, journal),
    building: fields.get("building") ?? null,
    locked: holder !== "",
    runId,
    through,
  };
}

function conditionOf(
  fields: ReadonlyMap<string, string>,
  runId: string,
  journal: string,
): ProjectionStatus["condition"] {
  if (!fields.has("current")) return "lost";
  if (fields.get("journal") !== journal) return "foreign";
  return fields.get("run_id") === runId ? "complete" : "restarted";
}

async function sweep(connection: Connection): Promise<number> {
  const { redis } = connection;
  const live = await connection.run(() => redis.hmget(keys.projection, "current", "building"));
  let removed = 0;
  let cursor = "0";
  do {
    const [next, found] = await connection.run(() => redis.scan(cursor, "MATCH", keys.anyGeneration, "COUNT", 500));
    const dead = found.filter((key) => {
      const generation = keys.generationOf(key);
      return generation !== null && !live.includes(generation);
    });
    if (dead.length > 0) removed += await connection.run(() => redis.unlink(...dead));
    cursor = next;
  } while (cursor !== "0");
  return removed;
}
