// flotilla workers: who is in the fleet and alive.
import { Command } from "commander";
import { Workers } from "../answers.ts";
import type { Context } from "../context.ts";
import { table } from "../table.ts";

export function workersCommand(context: Context): Command {
  return new Command("workers")
    .description("list workers with their live instances")
    .action(async (_options: unknown, command: Command) => {
      const answer = Workers.parse(await context.api(command).get("/v1/workers"));
      const { terminal } = context;
      if (context.isJson(command)) return terminal.print(JSON.stringify(answer));
      const rows = answer.workers.map((row) => [
        row.worker,
        row.live ? "live" : "away",
        String(row.instances.length),
        row.version,
        String(row.priority),
        String(row.functions.length),
      ]);
      terminal.print(table(["WORKER", "HEALTH", "INSTANCES", "VERSION", "PRIORITY", "FUNCTIONS"], rows));
    });
}
