// Whether the process that a pid file names is still the one that was meant when the file was written.
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";

/** Clocks of the file system and of the process table may differ by this much. */
const slackMs = 2_000;

/** The pid in the file while that process lives; null when it is gone or the number was given to a younger process. */
export function livePidOf(pidFile: string): number | null {
  const pid = readPid(pidFile);
  if (pid === null) return null;
  const ageMs = processAgeMs(pid);
  if (ageMs === null) return null;
  const fileAgeMs = Date.now() - statSync(pidFile).mtimeMs;
  return ageMs + slackMs >= fileAgeMs ? pid : null;
}

export function readPid(pidFile: string): number | null {
  const text = readText(pidFile)?.trim() ?? "";
  return /^[1-9]\d*$/.test(text) ? Number(text) : null;
}

/** Milliseconds since a process started; null when there is none, or only its zombie. */
export function processAgeMs(pid: number): number | null {
  if (process.platform !== "linux") return ageByPs(pid);
  const stat = procStat(String(pid));
  if (stat === null || stat.state === "Z" || stat.state === "X") return null;
  const own = procStat("self");
  if (own === null) return null;
  // Measured against ourselves, because /proc/uptime may count from the start of a container.
  return process.uptime() * 1000 + (own.startTicks - stat.startTicks) * 10;
}

function procStat(pid: string): { state: string; startTicks: number } | null {
  const text = readText(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The second field is the command in parentheses and may hold spaces and parentheses itself.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", startTicks: Number(fields[19]) };
}

function ageByPs(pid: number): number | null {
  try {
    return elapsedMs(execFileSync("ps", ["-o", "etime=", "-p", String(pid)], { encoding: "utf8" }));
  } catch {
    // ps exits with 1 when there is no such process.
    return null;
  }
}

/** `[[days-]hours:]minutes:seconds` of ps. */
export function elapsedMs(text: string): number | null {
  const match = /^\s*(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)\s*$/.exec(text);
  if (match === null) return null;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0));
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // ESRCH: the process went away while its entry was read.
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
}
