// The worker as a NATS service: $SRV.PING, INFO and STATS, answered with the documents of the micro protocol v1.
import { type FunctionContract, subjects } from "@flotilla/contracts";
import type { FlotillaError } from "@flotilla/errors";
import type { Worker } from "./types.ts";

/** Counters of one function, as STATS shows them. */
export class FunctionStats {
  requests = 0;
  errors = 0;
  lastError = "";
  processingMs = 0;

  add(durationMs: number, error: FlotillaError | undefined): void {
    this.requests += 1;
    this.processingMs += durationMs;
    if (error === undefined) return;
    this.errors += 1;
    this.lastError = error.code;
  }
}

export interface ServiceDescription {
  readonly worker: Worker;
  readonly instance: string;
  readonly startedAt: number;
  readonly stats: ReadonlyMap<string, FunctionStats>;
}

export const verbs = ["PING", "INFO", "STATS"] as const;
export type Verb = (typeof verbs)[number];

const types = {
  PING: "io.nats.micro.v1.ping_response",
  INFO: "io.nats.micro.v1.info_response",
  STATS: "io.nats.micro.v1.stats_response",
} as const satisfies Record<Verb, string>;

/** All subjects of one verb: every service, this one by name, this instance. */
export function discoverySubjects(verb: Verb, worker: string, instance: string): string[] {
  return [subjects.service(verb), subjects.service(verb, worker), subjects.service(verb, worker, instance)];
}

export function discoveryDocument(verb: Verb, service: ServiceDescription): Record<string, unknown> {
  const { worker, instance } = service;
  const identity = { name: worker.name, id: instance, version: worker.version, metadata: { outcomes: "true" } };
  const document = { type: types[verb], ...identity };
  switch (verb) {
    case "PING":
      return document;
    case "INFO":
      return {
        ...document,
        description: `Flotilla worker ${worker.name}`,
        endpoints: worker.functions.map(({ contract }) => ({
          ...endpointOf(worker.name, contract),
          metadata: metadataOf(contract),
        })),
      };
    case "STATS":
      return {
        ...document,
        started: new Date(service.startedAt).toISOString(),
        endpoints: worker.functions.map(({ contract }) => ({
          ...endpointOf(worker.name, contract),
          ...figuresOf(service.stats.get(contract.id)),
        })),
      };
    default:
      return verb satisfies never;
  }
}

/** Endpoint names know no colon. */
function endpointOf(worker: string, contract: FunctionContract): Record<string, unknown> {
  return {
    name: contract.id.replaceAll("::", "__"),
    subject: subjects.call(worker, contract.id),
    queue_group: worker,
  };
}

function metadataOf(contract: FunctionContract): Record<string, string> {
  return {
    function_id: contract.id,
    description: contract.description,
    replay: contract.replay,
    timeout_ms: String(contract.timeoutMs),
  };
}

function figuresOf(stats: FunctionStats | undefined): Record<string, unknown> {
  const { requests = 0, errors = 0, lastError = "", processingMs = 0 } = stats ?? {};
  const nanoseconds = Math.round(processingMs * 1_000_000);
  return {
    num_requests: requests,
    num_errors: errors,
    last_error: lastError,
    processing_time: nanoseconds,
    average_processing_time: requests === 0 ? 0 : Math.round(nanoseconds / requests),
  };
}
