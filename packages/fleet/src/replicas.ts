// How many processes of each worker a split fleet runs.
import { FlotillaError } from "@flotilla/errors";
import { requireKnown } from "./worker-folders.ts";

export type Replicas = Readonly<Record<string, number>>;

const entryPattern = /^([A-Za-z0-9_-]+)=(\d{1,3})$/;

/** `turn-orchestrator=2,harness=2`; zero is a number too. */
export function parseReplicas(text: string, known: readonly string[]): Replicas {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  return Object.fromEntries(entries.map((entry) => parseEntry(entry, known)));
}

function parseEntry(entry: string, known: readonly string[]): [string, number] {
  const [, worker, count] = entryPattern.exec(entry) ?? [];
  if (worker === undefined || count === undefined) {
    throw new FlotillaError("CONFIG_INVALID", `--replicas: ${entry} is not like turn-orchestrator=2`);
  }
  requireKnown(worker, known);
  return [worker, Number(count)];
}
