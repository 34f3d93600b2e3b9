// flotilla chat: a conversation with an agent.
import { randomId } from "@flotilla/contracts";
import { Command } from "commander";
import { chat } from "../chat/chat.ts";
import type { Context } from "../context.ts";

interface ChatCommandOptions {
  readonly session?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly system?: string;
  readonly functions?: string;
}

export function chatCommand(context: Context): Command {
  return new Command("chat")
    .description("talk to an agent: streams, asks for approvals")
    .option("--session <sid>", "go on with this session")
    .option("--provider <name>", "provider of the model")
    .option("--model <id>", "model; default: the fleet's")
    .option("--system <text>", "system prompt")
    .option("--functions <list>", "functions that the agent may use, for example demo::lookup,demo::refund")
    .action(async (options: ChatCommandOptions, command: Command) => {
      const { provider, model, system, functions } = options;
      const turnOptions = {
        ...(provider === undefined ? {} : { provider }),
        ...(model === undefined ? {} : { model }),
        ...(system === undefined ? {} : { system_prompt: system }),
        ...(functions === undefined ? {} : { functions: functions.split(",").map((id) => id.trim()) }),
      };
      await chat({
        api: context.api(command),
        sessionId: options.session ?? `chat-${randomId().slice(0, 12)}`,
        turnOptions,
        terminal: context.terminal,
        isJson: context.isJson(command),
        stdin: context.stdin,
      });
    });
}
