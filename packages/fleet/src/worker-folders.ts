// Which workers there are: every folder of services/ that has a src/worker.ts.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { FlotillaError } from "@flotilla/errors";
import type { WorkerDefinition } from "@flotilla/worker";

export const repositoryRoot = fileURLToPath(new URL("../../..", import.meta.url));
const servicesDir = join(repositoryRoot, "services");

const definitionFileOf = (worker: string): string => join(servicesDir, worker, "src", "worker.ts");

/** What a process of this worker alone runs. */
export const mainFileOf = (worker: string): string => join(servicesDir, worker, "src", "main.ts");

export function allWorkers(): string[] {
  return readdirSync(servicesDir)
    .filter((folder) => existsSync(definitionFileOf(folder)))
    .sort();
}

/** `all`, or worker names separated by commas. */
export function parseWorkers(text: string, known: readonly string[] = allWorkers()): string[] {
  const names = [...new Set(text.split(",").map((name) => name.trim()))].filter((name) => name !== "");
  if (names.length === 0) throw new FlotillaError("CONFIG_INVALID", "WORKERS: names no worker; use all, or a list");
  if (names.includes("all")) return [...known];
  for (const name of names) requireKnown(name, known);
  return names;
}

export function requireKnown(worker: string, known: readonly string[]): void {
  if (known.includes(worker)) return;
  throw new FlotillaError("CONFIG_INVALID", `there is no worker ${worker}; there are ${known.join(", ")}`);
}

export async function loadDefinitions(workers: readonly string[]): Promise<WorkerDefinition[]> {
  const modules = await Promise.all(workers.map((worker) => import(pathToFileURL(definitionFileOf(worker)).href)));
  return modules.map((module, index) => {
    const definition = (module as { definition?: WorkerDefinition }).definition;
    if (definition === undefined)
      throw new TypeError(`${definitionFileOf(workers[index] ?? "")} exports no definition`);
    return definition;
  });
}
