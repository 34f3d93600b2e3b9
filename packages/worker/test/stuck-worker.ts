// A worker process for kill tests: it takes `probe::work`, tells its parent who it is, and never answers.
import { runWorkers } from "../src/index.ts";
import { aDefinition, aWork } from "./support.ts";

const handle = runWorkers({
  definitions: [aDefinition({ functions: [aWork(() => new Promise(() => {}))] })],
  env: process.env,
});
await handle.ready();
process.send?.(handle.workers[0]?.instance ?? "");
