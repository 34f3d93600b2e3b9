// Moving the sessions of a stopped fleet to another number of shards: on the given NATS, or on our own started for it.
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Migrated, type MigrateOptions, migrateShards } from "@flotilla/bus";
import type { Env } from "@flotilla/config";
import { FleetError } from "./fleet-error.ts";
import { connectNats } from "./foreign-servers.ts";
import { stopOrphans } from "./orphans.ts";
import { runDirectory } from "./run-directory.ts";
import { startOwnNats } from "./servers.ts";
import { allWorkers } from "./worker-folders.ts";

export interface MoveJournalOptions extends MigrateOptions {
  readonly home: string;
  /** `NATS_URL` with the operator's login replaces the NATS of the home. */
  readonly env: Env;
  readonly report: (line: string) => void;
}

const serverGraceMs = 3_000;

export async function moveJournal(options: MoveJournalOptions): Promise<Migrated> {
  const given = options.env.NATS_URL;
  return given === undefined || given === "" ? onOwnNats(options) : onNats(given, options);
}

async function onNats(url: string, options: MoveJournalOptions): Promise<Migrated> {
  const nc = await connectNats(url, { report: options.report });
  try {
    return await migrateShards(nc, options);
  } finally {
    await nc.close();
  }
}

/** Holds the home like a fleet does, so that none starts meanwhile; a fleet that runs there is refused. */
async function onOwnNats(options: MoveJournalOptions): Promise<Migrated> {
  const home = resolve(options.home);
  if (!existsSync(join(home, "nats", "store"))) throw new FleetError(`there is no journal in ${home}`);
  const runDir = runDirectory(home);
  mkdirSync(join(home, "logs"), { recursive: true, mode: 0o700 });
  runDir.claim();
  try {
    await stopOrphans(runDir);
    const { report, to } = options;
    const nats = await startOwnNats({ home, runDir, report, workers: allWorkers(), shards: to });
    try {
      return await onNats(nats.url, options);
    } finally {
      await nats.process.stop(serverGraceMs);
    }
  } finally {
    runDir.clear();
  }
}
