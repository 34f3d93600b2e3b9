// flotilla down: stops what `up` started in this home, and nothing else.
import { stopFleet } from "@flotilla/fleet";
import { Command } from "commander";
import type { Context } from "../context.ts";

export function downCommand(context: Context): Command {
  return new Command("down")
    .description("stop the fleet of this folder (FLOTILLA_HOME)")
    .action(async (_options: unknown, command: Command) => {
      const { stopped } = await stopFleet(context.home);
      const { terminal } = context;
      if (context.isJson(command)) return terminal.print(JSON.stringify({ home: context.home, stopped }));
      terminal.print(stopped.length === 0 ? `nothing runs in ${context.home}` : `stopped ${stopped.join(", ")}`);
    });
}
