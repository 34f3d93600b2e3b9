// flotilla approve and deny: a person's word on one parked call, bound to the arguments it was shown with.
import type { ApiClient } from "@flotilla/client";
import { Command } from "commander";
import { Approvals } from "../answers.ts";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";
import { brief } from "../table.ts";

export type Decision = "allow" | "deny";

export function approvalCommands(context: Context): Command[] {
  return [
    decisionCommand(context, { name: "approve", decision: "allow", description: "let a parked call run" }),
    decisionCommand(context, { name: "deny", decision: "deny", description: "refuse a parked call" }),
  ];
}

function decisionCommand(
  context: Context,
  { name, decision, description }: { name: string; decision: Decision; description: string },
): Command {
  return new Command(name)
    .description(description)
    .argument("<sid>", "session id")
    .argument("<call_id>", "function call id, see flotilla show")
    .option("--reason <text>", "told to the model and kept in the audit log")
    .action(async (sessionId: string, callId: string, options: { reason?: string }, command: Command) => {
      const api = context.api(command);
      const approval = await pendingApproval(api, sessionId, callId);
      await decide(api, { sessionId, callId, decision, digest: approval.args_digest, reason: options.reason });
      const { terminal } = context;
      if (context.isJson(command)) return terminal.print(JSON.stringify({ ok: true, decision, ...approval }));
      const verb = decision === "allow" ? "approved" : "denied";
      terminal.print(`${verb}: ${approval.function_id} ${brief(JSON.stringify(approval.args), 200)}`);
    });
}

async function pendingApproval(api: ApiClient, sessionId: string, callId: string) {
  const { approvals } = Approvals.parse(await api.get(`/v1/approvals?session_id=${encodeURIComponent(sessionId)}`));
  const found = approvals.find((approval) => approval.function_call_id === callId);
  if (found !== undefined) return found;
  const pending = approvals.map((approval) => approval.function_call_id).join(", ");
  const hint = pending === "" ? "nothing is pending there" : `pending there: ${pending}`;
  throw new CliError(`call ${callId} of session ${sessionId} waits for no decision; ${hint}`, "APPROVAL_NOT_FOUND");
}

export async function decide(
  api: ApiClient,
  word: { sessionId: string; callId: string; decision: Decision; digest: string; reason?: string | undefined },
): Promise<void> {
  const path = `/v1/sessions/${encodeURIComponent(word.sessionId)}/approvals/${encodeURIComponent(word.callId)}`;
  const { decision, digest, reason } = word;
  await api.post(path, { decision, args_digest: digest, ...(reason === undefined ? {} : { reason }) });
}
