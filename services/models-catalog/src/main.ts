// The models catalog as a process of its own.
import { runMain } from "@flotilla/worker";
import { definition } from "./worker.ts";

await runMain(definition);
