// The run directory of a fleet's home: pid files and addresses (wire.md 6).
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { FleetError } from "./fleet-error.ts";
import { livePidOf } from "./process-identity.ts";

/** Pid file of the process that runs `flotilla up`. */
export const fleetPidName = "flotilla";
export type AddressName = "nats" | "redis" | "http";

export interface RunDirectory {
  readonly path: string;
  /** Makes this process the one fleet of the home; refuses while another one lives. */
  claim(): void;
  writePid(name: string, pid: number): void;
  /** The pid of a process that we started and that still lives. */
  livePid(name: string): number | null;
  /** Names of all pid files, of live processes and of dead ones. */
  pidNames(): string[];
  removePid(name: string): void;
  writeAddress(name: AddressName, url: string): void;
  readAddress(name: AddressName): string | null;
  /** Removes every pid file and address. */
  clear(): void;
}

const ownerOnly = 0o600;

export function runDirectory(home: string): RunDirectory {
  const path = join(home, "run");
  const pidFile = (name: string): string => join(path, `${name}.pid`);
  const addressFile = (name: AddressName): string => join(path, `${name}.url`);
  const removeAll = (suffix: string): void => {
    for (const file of filesOf(path, suffix)) rmSync(join(path, file), { force: true });
  };
  return {
    path,
    claim() {
      mkdirSync(path, { recursive: true });
      claimFile(pidFile(fleetPidName), home);
    },
    writePid: (name, pid) => replaceFile(pidFile(name), `${pid}\n`),
    livePid: (name) => livePidOf(pidFile(name)),
    pidNames: () => filesOf(path, ".pid").map((file) => file.slice(0, -".pid".length)),
    removePid: (name) => rmSync(pidFile(name), { force: true }),
    writeAddress: (name, url) => replaceFile(addressFile(name), `${url}\n`),
    readAddress: (name) => (existsSync(addressFile(name)) ? readFileSync(addressFile(name), "utf8").trim() : null),
    clear() {
      removeAll(".url");
      removeAll(".pid");
    },
  };
}

function filesOf(path: string, suffix: string): string[] {
  if (!existsSync(path)) return [];
  return readdirSync(path).filter((file) => file.endsWith(suffix));
}

/** By link, which fails when the file exists: of two starts at once exactly one wins. */
function claimFile(file: string, home: string): void {
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, `${process.pid}\n`);
  try {
    for (const isLastTry of [false, true]) {
      if (tryLink(mine, file)) return;
      const owner = livePidOf(file);
      if (owner !== null || isLastTry) throw alreadyRunning(home, owner);
      rmSync(file, { force: true });
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function alreadyRunning(home: string, owner: number | null): FleetError {
  const who = owner === null ? "another process" : `pid ${owner}`;
  return new FleetError(
    `a fleet is already running in ${home} (${who}); stop it with: flotilla down, or set FLOTILLA_HOME and FLOTILLA_PORT for a second one`,
  );
}

/** Never half a file: readers poll these. */
function replaceFile(file: string, text: string): void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, text, { mode: ownerOnly });
  chmodSync(fresh, ownerOnly);
  renameSync(fresh, file);
}
