// flotilla call: one function call from outside.
import { Command } from "commander";
import { Triggered } from "../answers.ts";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";

export function callCommand(context: Context): Command {
  return new Command("call")
    .description("call a function that is open to clients and print its answer")
    .argument("<id>", "function id, for example demo::echo")
    .argument("[json]", "arguments as a JSON object", "{}")
    .option("--session <sid>", "session that the call belongs to")
    .action(async (id: string, json: string, options: { session?: string }, command: Command) => {
      const session = options.session === undefined ? {} : { session_id: options.session };
      const request = { function_id: id, ...session, payload: parseArguments(json) };
      const answer = Triggered.parse(await context.api(command).post("/v1/trigger", request));
      context.terminal.print(JSON.stringify(answer.body, null, context.isJson(command) ? 0 : 2));
    });
}

function parseArguments(json: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    throw new CliError(`the arguments are not JSON: ${error instanceof Error ? error.message : json}`, "INVALID_INPUT");
  }
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return { ...parsed };
  throw new CliError("the arguments must be a JSON object", "INVALID_INPUT");
}
