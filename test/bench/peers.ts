// The peers' kit, when it lies beside the repository: its own run, in the same minutes on the same machine.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { repositoryRoot } from "@flotilla/fleet";

const kit = resolve(repositoryRoot, "..", "shared", "peers");

/** `systems`: comma-separated names of the kit, for example `bare,restate`. Null when there is no kit. */
export async function runPeers(systems: string, print: (line: string) => void): Promise<unknown> {
  const script = join(kit, "run.sh");
  if (!existsSync(script)) {
    print(`peers     no kit at ${kit}: left out`);
    return null;
  }
  const folder = await mkdtemp(join(tmpdir(), "flotilla-peers-"));
  const out = join(folder, "results.json");
  try {
    const code = await run(script, systems, { OUT: out, DATA: join(folder, "data") });
    if (code !== 0) throw new Error(`the peers' kit ended with ${code}`);
    return JSON.parse(readFileSync(out, "utf8")) as unknown;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function run(script: string, systems: string, env: Record<string, string>): Promise<number> {
  // Direct calls and the bare loop are always measured; the rest of the names are added to them.
  const args = ["--only", systems, "--workloads", "w1,w2"];
  return new Promise((done, reject) => {
    const child = spawn("bash", [script, ...args], { env: { ...process.env, ROUNDS: "2", ...env }, stdio: "inherit" });
    child.once("error", reject);
    child.once("exit", (code) => done(code ?? 1));
  });
}
