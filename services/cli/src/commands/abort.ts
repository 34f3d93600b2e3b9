// flotilla abort: ends a running turn.
import { Command } from "commander";
import { Aborted } from "../answers.ts";
import type { Context } from "../context.ts";

export function abortCommand(context: Context): Command {
  return new Command("abort")
    .description("end the running turn of a session")
    .argument("<sid>", "session id")
    .option("--reason <text>", "kept in the journal")
    .action(async (sessionId: string, options: { reason?: string }, command: Command) => {
      const body = options.reason === undefined ? {} : { reason: options.reason };
      const path = `/v1/sessions/${encodeURIComponent(sessionId)}/abort`;
      const answer = Aborted.parse(await context.api(command).post(path, body));
      const { terminal } = context;
      if (context.isJson(command)) return terminal.print(JSON.stringify(answer));
      terminal.print(answer.aborted ? `aborted; the session is ${answer.state}` : "nothing was running");
    });
}
