// The whole suite as one count: formatting and lint, types, and every vitest file. The last line is "N passed, N failed".
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Count, countReport, exitCodeOf, sum } from "./suite-count.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const reportFile = join(root, "test", "reports", "vitest.json");

function run(command: string, args: readonly string[]): boolean {
  const { status, error } = spawnSync(join(root, "node_modules", ".bin", command), args, {
    cwd: root,
    stdio: "inherit",
  });
  if (error !== undefined) process.stderr.write(`${command}: ${error.message}\n`);
  return status === 0;
}

/** A check that is one thing to pass or fail. */
function check(command: string, args: readonly string[]): Count {
  return run(command, args) ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

function vitest(args: readonly string[]): Count {
  mkdirSync(join(root, "test", "reports"), { recursive: true });
  rmSync(reportFile, { force: true });
  const isGreen = run("vitest", [
    "run",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${reportFile}`,
    ...args,
  ]);
  return countReport(readReport(), isGreen);
}

/** Null when vitest did not get as far as writing one. */
function readReport(): unknown {
  try {
    return JSON.parse(readFileSync(reportFile, "utf8"));
  } catch (error) {
    process.stderr.write(`there is no test report: ${error instanceof Error ? error.message : error}\n`);
    return null;
  }
}

const only = process.argv.slice(2);
const checks =
  only.length > 0 ? [] : [check("biome", ["check", "."]), check("tsc", ["--noEmit", "-p", "tsconfig.json"])];
const tests = vitest(only);
const total = sum([...checks, tests]);
process.exitCode = exitCodeOf(total, tests);
process.stdout.write(`${total.passed} passed, ${total.failed} failed\n`);
