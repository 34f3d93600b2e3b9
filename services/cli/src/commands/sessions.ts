// flotilla sessions: the newest sessions.
import { Command } from "commander";
import { Sessions } from "../answers.ts";
import type { Context } from "../context.ts";
import { brief, localTime, table } from "../table.ts";

export function sessionsCommand(context: Context): Command {
  return new Command("sessions")
    .description("list sessions, newest first")
    .option("--limit <n>", "how many", "20")
    .option("--offset <n>", "how many to skip", "0")
    .action(async (options: { limit: string; offset: string }, command: Command) => {
      const query = new URLSearchParams({ limit: options.limit, offset: options.offset });
      const answer = Sessions.parse(await context.api(command).get(`/v1/sessions?${query}`));
      const { terminal } = context;
      if (context.isJson(command)) return terminal.print(JSON.stringify(answer));
      if (answer.sessions.length === 0)
        return terminal.print("There are no sessions yet; start one with: flotilla chat");
      const rows = answer.sessions.map((session) => [
        session.session_id,
        session.state,
        localTime(session.updated_at),
        `$${(session.cost_usd ?? 0).toFixed(4)}`,
        brief(session.last_message_summary ?? "", 60),
      ]);
      terminal.print(table(["SESSION", "STATE", "CHANGED (UTC)", "COST", "LAST MESSAGE"], rows));
      const left = answer.total - answer.sessions.length - Number(options.offset);
      if (left > 0) terminal.note(`${left} more; see --limit and --offset`);
    });
}
