// The session worker as its own process.
import { runMain } from "@flotilla/worker";
import { definition } from "./worker.ts";

await runMain(definition);
