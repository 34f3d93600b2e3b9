// flotilla show: one session's state and transcript.
import { Command } from "commander";
import { Messages, Session } from "../answers.ts";
import type { Context } from "../context.ts";
import { messageLines } from "../transcript.ts";

export function showCommand(context: Context): Command {
  return new Command("show")
    .description("show a session: state, cost and transcript")
    .argument("<sid>", "session id")
    .action(async (sessionId: string, _options: unknown, command: Command) => {
      const api = context.api(command);
      const path = `/v1/sessions/${encodeURIComponent(sessionId)}`;
      const session = Session.parse(await api.get(path));
      const { messages } = Messages.parse(await api.get(`${path}/messages`));
      const { terminal } = context;
      if (context.isJson(command)) return terminal.print(JSON.stringify({ ...session, messages }));
      terminal.print(`${session.session_id}  ${session.state}  $${(session.cost_usd ?? 0).toFixed(4)}`);
      for (const { message } of messages) terminal.print(["", ...messageLines(message)].join("\n"));
      if (session.error != null) terminal.print(`\nerror: ${session.error.message ?? session.error.code ?? "unknown"}`);
      for (const call of session.awaiting_approval) {
        terminal.print(
          `\nwaits for approval: ${call.function_id}  (flotilla approve ${sessionId} ${call.function_call_id})`,
        );
      }
    });
}
