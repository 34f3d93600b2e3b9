// A worker as a value, checked when it is made.
import { idPattern } from "@flotilla/contracts";
import type { Background, Implementation, Worker } from "./types.ts";

export interface WorkerOptions {
  /** Also the bus user, the queue group, the NATS service and `service.name`. */
  readonly name: string;
  /** Semantic version without `v`. */
  readonly version: string;
  readonly functions?: readonly Implementation[];
  readonly background?: readonly Background[];
  /** Routing priority; a swap ships 100. @default 0 */
  readonly priority?: number;
  /** How long running calls may go on after SIGTERM. @default 300 */
  readonly drainSeconds?: number;
}

const semanticVersion = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/;

export function defineWorker(options: WorkerOptions): Worker {
  const { name, version, functions = [], background = [] } = options;
  if (!idPattern.test(name)) throw new TypeError(`not a worker name: ${name}`);
  if (!semanticVersion.test(version)) throw new TypeError(`not a semantic version: ${version}`);
  refuseDuplicates(
    "function",
    functions.map(({ contract }) => contract.id),
  );
  refuseDuplicates(
    "background",
    background.map((part) => part.name),
  );
  const { priority = 0, drainSeconds = 300 } = options;
  return { name, version, functions, background, priority, drainSeconds };
}

function refuseDuplicates(what: string, names: readonly string[]): void {
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate !== undefined) throw new TypeError(`${what} ${duplicate} is given twice`);
}
