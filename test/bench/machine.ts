// What the figures were measured on: they mean nothing without it.
import { execFileSync } from "node:child_process";
import { cpus, loadavg, release, totalmem } from "node:os";

export interface Machine {
  readonly cpus: number;
  readonly model: string;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly nats: string;
  readonly redis: string;
  readonly loadAtStart: readonly number[];
}

export function describeMachine(natsVersion: string): Machine {
  return {
    cpus: cpus().length,
    model: cpus()[0]?.model ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    nats: natsVersion,
    redis: redisVersion(),
    loadAtStart: load(),
  };
}

export function load(): number[] {
  return loadavg().map((value) => Math.round(value * 100) / 100);
}

function redisVersion(): string {
  try {
    return /v=(\S+)/.exec(execFileSync("redis-server", ["--version"], { encoding: "utf8" }))?.[1] ?? "unknown";
  } catch {
    return "in a container";
  }
}
