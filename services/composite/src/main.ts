// Runs several workers in one process: WORKERS=all, or a list. They still meet only on the bus.
import { loadDefinitions, parseWorkers } from "@flotilla/fleet";
import { runMain } from "@flotilla/worker";

await runMain(await loadDefinitions(parseWorkers(process.env.WORKERS ?? "all")));
