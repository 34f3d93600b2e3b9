// What processes cost, read from /proc: CPU time, resident memory, and how busy the machine was besides.
import { readFileSync } from "node:fs";

/** USER_HZ of every Linux that Node runs on. */
const tickMs = 10;

/** User and system time so far, in ms; 0 for a process that is gone. */
export function cpuMsOf(pid: number): number {
  const fields = statFields(`/proc/${pid}/stat`);
  return fields === null ? 0 : (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** Resident set in bytes; 0 for a process that is gone. */
export function residentBytesOf(pid: number): number {
  return kilobytes(`/proc/${pid}/status`, "VmRSS") * 1024;
}

/** Shared pages counted once among those that share them; 0 where the system does not tell. */
export function proportionalBytesOf(pid: number): number {
  return kilobytes(`/proc/${pid}/smaps_rollup`, "Pss") * 1024;
}

/** Time that all CPUs together were busy so far, in ms. */
export function machineBusyMs(): number {
  const [, user, nice, system, , , irq, softirq] = (readText("/proc/stat")?.split("\n")[0] ?? "").split(/\s+/);
  return [user, nice, system, irq, softirq].reduce((total, ticks) => total + Number(ticks ?? 0), 0) * tickMs;
}

/** The fields after the command name, which may hold spaces. */
function statFields(path: string): string[] | null {
  const text = readText(path);
  return text === null ? null : text.slice(text.lastIndexOf(")") + 2).split(" ");
}

function kilobytes(path: string, name: string): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readText(path) ?? "");
  return Number(found?.[1] ?? 0);
}

/** Null when the process has ended meanwhile or the system has no such file. */
function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
