// A worker process under its production main, for tests of signals and exit codes. Its parent is told what the handler sees.
import { z } from "zod";
import { runMain, type WorkerDefinition } from "../src/index.ts";
import { aDefinition, aWork } from "./support.ts";

const functions = [
  aWork(async ({ signal }, name) => {
    process.send?.(`started ${name}`);
    if (name === "defect") void Promise.reject(new Error("a forgotten promise"));
    if (name === "finishes")
      return new Promise((resolve) => process.once("message", () => resolve({ finished: true })));
    await new Promise((_, reject) => {
      if (name === "obeys") signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  }),
];
const background = [
  {
    name: "probe",
    start: async () => {},
    stop: async () => {
      process.send?.("background stopped");
      if (process.env.PROBE_STUCK === "true") await new Promise(() => {});
    },
  },
];
const definition: WorkerDefinition = {
  ...aDefinition({ functions, background }),
  config: z.object({ PROBE_LIMIT: z.enum(["low", "high"]).default("low") }),
};
await runMain(definition);
