// The command line as a value: global options and the commands.
import { Command } from "commander";
import manifest from "../package.json" with { type: "json" };
import { abortCommand } from "./commands/abort.ts";
import { approvalCommands } from "./commands/approvals.ts";
import { callCommand } from "./commands/call.ts";
import { chatCommand } from "./commands/chat.ts";
import { downCommand } from "./commands/down.ts";
import { functionsCommand } from "./commands/functions.ts";
import { migrateShardsCommand } from "./commands/migrate-shards.ts";
import { rebuildCommand } from "./commands/rebuild.ts";
import { sessionsCommand } from "./commands/sessions.ts";
import { showCommand } from "./commands/show.ts";
import { upCommand } from "./commands/up.ts";
import { workersCommand } from "./commands/workers.ts";
import { createContext, type Surroundings } from "./context.ts";

export function flotillaProgram(surroundings: Surroundings): Command {
  const program = new Command("flotilla")
    .description("Runs and talks to a fleet of agent workers.")
    .version(manifest.version)
    .option("--url <url>", "front door of the fleet (FLOTILLA_URL; default: the fleet of this folder)")
    .option("--token <token>", "bearer token, when the fleet asks for one (FLOTILLA_TOKEN)")
    .option("--json", "machine-readable output")
    .showHelpAfterError("(flotilla --help lists the commands)")
    .helpCommand(false);
  const context = createContext(program, surroundings);
  const commands = [
    upCommand(context),
    downCommand(context),
    chatCommand(context),
    sessionsCommand(context),
    showCommand(context),
    ...approvalCommands(context),
    abortCommand(context),
    workersCommand(context),
    functionsCommand(context),
    callCommand(context),
    rebuildCommand(context),
    migrateShardsCommand(context),
  ];
  for (const command of commands) program.addCommand(withGlobalOptions(command));
  return program;
}

/** The global options are taken before and after the command's name. */
function withGlobalOptions(command: Command): Command {
  return command
    .option("--url <url>", "see flotilla --help")
    .option("--token <token>", "see flotilla --help")
    .option("--json", "machine-readable output");
}
