// Runs several workers in one process: WORKERS=all, or a list. They still meet only on the bus.
import { loadDefinitions, parseWorkers } from "@flotilla/fleet";
import { runMain } from "@flotilla/worker";
import { orExit } from "./or-exit.ts";

const workers = orExit(() => parseWorkers(process.env.WORKERS ?? "all"));
await runMain(await loadDefinitions(workers));
