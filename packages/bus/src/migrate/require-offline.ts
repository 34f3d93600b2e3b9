// A move needs the journal for itself: no worker that writes to it is live, and no session is in the middle of a step.
import { parseTurnSubject, streamNames, subjects } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { isNoResponders } from "../call-reply.ts";
import { readBatch } from "../direct-read.ts";
import { isGoodbye, parseRegistryKey, readManifest } from "../registry-entry.ts";
import { forEachOf } from "./for-each-of.ts";

const writers = new Set(["turn-orchestrator", "harness", "session", "approval-gate"]);
/** Whoever offers one of these takes the place of a writer. */
const writing = /^(run|turn|harness|approval|session-tree|session-inbox)::/;
const pingMs = 1_000;
const named = 10;

/** FLEET_RUNNING while one of them answers; an entry that a killed one left behind does not count. */
export async function requireNoWriters(nc: NatsConnection, jsm: JetStreamManager): Promise<void> {
  const instances = await writerInstances(jsm);
  const live: string[] = [];
  await forEachOf(instances, async (instance) => {
    if (await answers(nc, instance)) live.push(instance);
  });
  if (live.length === 0) return;
  const message = `${listed(live)} ${live.length === 1 ? "is" : "are"} live; stop the workers first (flotilla down, or scale them to zero)`;
  throw new FlotillaError("FLEET_RUNNING", message, { details: { instances: live } });
}

async function writerInstances(jsm: JetStreamManager): Promise<string[]> {
  const names = new Set(writers);
  const found: { worker: string; instance: string }[] = [];
  for (let seq = 1; ; ) {
    const page = await readBatch(jsm, streamNames.registry, { seq, next_by_subj: subjects.registryAll, batch: 256 });
    for (const message of page) {
      const key = parseRegistryKey(message.subject);
      if (key === null || isGoodbye(message.header.get("KV-Operation"), message.data)) continue;
      if (key.kind === "instance") found.push(key);
      const offered = key.kind === "worker" ? readManifest(message.data, key.worker, 0)?.manifest.functions : undefined;
      if (offered?.some(({ id }) => writing.test(id))) names.add(key.worker);
    }
    const last = page.at(-1);
    if (last === undefined || last.pending === 0) break;
    seq = last.seq + 1;
  }
  return found.filter(({ worker }) => names.has(worker)).map(({ instance }) => instance);
}

/** A silent one counts as live: it may be frozen. */
async function answers(nc: NatsConnection, instance: string): Promise<boolean> {
  try {
    await nc.request(subjects.instance(instance), "", { timeout: pingMs });
    return true;
  } catch (error) {
    return !isNoResponders(error);
  }
}

export interface Place {
  readonly shard: number;
  readonly sessionId: string;
}

/** SESSION_BUSY while an owner's work is open. A parked session waits, and so does one with inputs nobody has taken. */
export async function requireIdle(jsm: JetStreamManager, from: number, places: readonly Place[]): Promise<void> {
  const busy: string[] = [];
  await forEachOf(places, async ({ shard, sessionId }) => {
    const query = { last_by_subj: subjects.commitsOf(shard, sessionId) };
    const newest = await jsm.streams.getMessage(streamNames.turnStep(shard), query);
    const part = newest === null ? undefined : parseTurnSubject(newest.subject)?.part;
    if (part?.kind === "commit" && part.commit !== "idle") busy.push(sessionId);
  });
  if (busy.length === 0) return;
  const one = busy.length === 1;
  const message =
    `${one ? "session" : "sessions"} ${listed(busy)} ${one ? "is" : "are"} in the middle of a turn; start the fleet with ` +
    `TURN_SHARDS=${from}, let ${one ? "it" : "them"} end (or \`flotilla abort <session>\`), and stop it again`;
  throw new FlotillaError("SESSION_BUSY", message, { details: { sessions: busy } });
}

function listed(names: readonly string[]): string {
  const first = [...names].sort().slice(0, named).join(", ");
  return names.length > named ? `${first} and ${names.length - named} more` : first;
}
