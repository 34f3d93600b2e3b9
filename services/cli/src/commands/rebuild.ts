// flotilla rebuild: the Redis projection anew from the journal.
import { Command } from "commander";
import { Triggered } from "../answers.ts";
import type { Context } from "../context.ts";

export function rebuildCommand(context: Context): Command {
  return new Command("rebuild")
    .description("rebuild the projection in Redis from the journal")
    .action(async (_options: unknown, command: Command) => {
      const request = { function_id: "session-tree::rebuild", payload: {} };
      const { body } = Triggered.parse(await context.api(command).post("/v1/trigger", request));
      const { terminal } = context;
      if (context.isJson(command)) return terminal.print(JSON.stringify(body));
      const { sessions, commits, duration_ms: ms } = body as { sessions: number; commits: number; duration_ms: number };
      terminal.print(`rebuilt ${sessions} sessions from ${commits} commits in ${ms} ms`);
    });
}
