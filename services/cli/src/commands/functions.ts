// flotilla functions: what can be called, and which worker a call reaches now.
import { Command } from "commander";
import { Functions } from "../answers.ts";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";
import { brief, table } from "../table.ts";

export function functionsCommand(context: Context): Command {
  return new Command("functions")
    .description("list functions and the workers that serve them; with an id: its schema")
    .argument("[id]", "function id")
    .action(async (id: string | undefined, _options: unknown, command: Command) => {
      const answer = Functions.parse(await context.api(command).get("/v1/functions"));
      const { terminal } = context;
      if (id !== undefined) {
        const found = answer.functions.find((row) => row.id === id);
        if (found === undefined) throw new CliError(`no worker offers ${id}`, "FUNCTION_NOT_FOUND");
        return terminal.print(JSON.stringify(found, null, context.isJson(command) ? 0 : 2));
      }
      if (context.isJson(command)) return terminal.print(JSON.stringify(answer));
      const rows = answer.functions.map((row) => [
        row.id,
        row.worker,
        row.live ? "live" : "away",
        row.version,
        row.replay,
        brief(row.description),
      ]);
      terminal.print(table(["FUNCTION", "WORKER", "HEALTH", "VERSION", "REPLAY", "DESCRIPTION"], rows));
    });
}
