// Reading the projection; a projection that is not built is as unavailable as a Redis that is away.
import type { PendingApproval } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { Connection } from "./connection.ts";
import { keys } from "./keys.ts";
import { script } from "./script.ts";
import * as lua from "./scripts.ts";
import type { EntryRow, SessionRow, State } from "./types.ts";

const listScript = script(lua.list);
const hashScript = script(lua.hash);

type Readers = Pick<State, "listSessions" | "listApprovals" | "getTurnState" | "listEntries">;

export function createReaders(connection: Connection): Readers {
  const readHash = async (name: string): Promise<Map<string, string>> => {
    const flat = builtOrThrow(await hashScript(connection, [keys.projection], [keys.root, name])) as string[];
    const fields = new Map<string, string>();
    for (let i = 0; i + 1 < flat.length; i += 2) fields.set(flat[i] ?? "", flat[i + 1] ?? "");
    return fields;
  };
  return {
    async listSessions({ limit, offset, order, workspace }) {
      const index = workspace === undefined ? keys.scope.sessions : keys.scope.sessionsOf(workspace);
      const args = [keys.root, index, keys.scope.turnStatePrefix, order, offset, offset + limit - 1];
      const reply = builtOrThrow(await listScript(connection, [keys.projection], args));
      const [total, ...flat] = reply as [number, ...string[]];
      const sessions: SessionRow[] = [];
      for (let i = 0; i < flat.length; i += 3)
        sessions.push(rowOf(flat[i] ?? "", flat[i + 1] ?? "", flat[i + 2] ?? ""));
      return { sessions, total };
    },
    async listApprovals() {
      const rows = [...(await readHash(keys.scope.approvals)).values()];
      const approvals = rows.map((row) => JSON.parse(row) as PendingApproval);
      return approvals.sort((a, b) => a.created_at - b.created_at || compare(a.function_call_id, b.function_call_id));
    },
    async getTurnState(sessionId) {
      const fields = await readHash(keys.scope.turnState(sessionId));
      const row = fields.get("row");
      return row === undefined ? null : rowOf(row, fields.get("created_at") ?? "", fields.get("summary") ?? "");
    },
    async listEntries(sessionId) {
      const rows = [...(await readHash(keys.scope.entries(sessionId))).values()].map(entryOf);
      return rows.sort((a, b) => a.seq - b.seq || a.index - b.index).map(({ entry }) => entry);
    },
  };
}

function builtOrThrow(reply: unknown): unknown {
  if (reply !== lua.lost) return reply;
  throw new FlotillaError("STORE_UNAVAILABLE", "the projection is being rebuilt", { retryAfterMs: 1_000 });
}

function rowOf(row: string, createdAt: string, summary: string): SessionRow {
  return {
    ...(JSON.parse(row) as Omit<SessionRow, "created_at">),
    created_at: Number(createdAt),
    ...(summary === "" ? {} : { last_message_summary: summary }),
  };
}

/** `<seq>.<index> <row>` */
function entryOf(value: string): { seq: number; index: number; entry: EntryRow } {
  const space = value.indexOf(" ");
  const [seq, index] = value.slice(0, space).split(".");
  return { seq: Number(seq), index: Number(index), entry: JSON.parse(value.slice(space + 1)) as EntryRow };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
