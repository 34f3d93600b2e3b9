// flotilla up: a whole fleet on this machine.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { allWorkers, type LocalFleetOptions, parseReplicas, parseWorkers } from "@flotilla/fleet";
import { Command } from "commander";
import manifest from "../../package.json" with { type: "json" };
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";
import { runDetached } from "../up/detached.ts";
import { runForeground } from "../up/foreground.ts";

interface UpOptions {
  readonly detach?: boolean;
  readonly split?: boolean;
  readonly replicas?: string;
  readonly supervise?: boolean;
  readonly workers?: string;
}

export function upCommand(context: Context): Command {
  return new Command("up")
    .description("start NATS, Redis and the workers; Ctrl-C stops them")
    .option("--detach", "return once it is ready; stop it with: flotilla down")
    .option("--split", "every worker in a process of its own")
    .option("--replicas <list>", "with --split: processes per worker, for example turn-orchestrator=2,harness=2")
    .option("--supervise", "with --split: start a worker again when it ends (NATS and Redis always are)")
    .option("--workers <list>", "workers to run (WORKERS)", context.env.WORKERS || "all")
    .action(async (options: UpOptions, command: Command) => {
      const isJson = context.isJson(command);
      const fleet = fleetOptions(context, options);
      if (options.detach === true) {
        const logFile = join(context.home, "logs", "up.log");
        mkdirSync(join(context.home, "logs"), { recursive: true, mode: 0o700 });
        return runDetached({
          args: detachedArguments(options),
          env: context.env,
          logFile,
          terminal: context.terminal,
          isJson,
        });
      }
      return runForeground({ fleet, terminal: context.terminal, isJson });
    });
}

function fleetOptions(context: Context, options: UpOptions): LocalFleetOptions {
  const isSplit = options.split === true;
  if (!isSplit && (options.replicas !== undefined || options.supervise === true)) {
    throw new CliError(
      "--replicas and --supervise need --split: in one process there is one of each worker",
      "INVALID_INPUT",
    );
  }
  if (!Number.isInteger(context.port) || context.port < 1 || context.port > 65_535) {
    throw new CliError("FLOTILLA_PORT: must be a port number from 1 to 65535", "CONFIG_INVALID");
  }
  return {
    home: context.home,
    env: context.env,
    port: context.port,
    workers: parseWorkers(options.workers ?? "all"),
    isSplit,
    replicas: parseReplicas(options.replicas ?? "", allWorkers()),
    isSupervised: options.supervise === true,
    output: "inherit",
    version: manifest.version,
    report: context.terminal.note,
    ...waitOf(context.env.NATS_CONNECT_TIMEOUT_MS),
  };
}

/** How long to wait for given servers; the same variable bounds the workers' own waiting. */
function waitOf(text: string | undefined): { waitMs?: number } {
  return text === undefined || !/^[1-9]\d*$/.test(text) ? {} : { waitMs: Number(text) };
}

/** The same command without `--detach`; it was checked here already. */
function detachedArguments(options: UpOptions): string[] {
  return [
    "up",
    ...(options.split === true ? ["--split"] : []),
    ...(options.replicas === undefined ? [] : ["--replicas", options.replicas]),
    ...(options.supervise === true ? ["--supervise"] : []),
    ...(options.workers === undefined ? [] : ["--workers", options.workers]),
  ];
}
