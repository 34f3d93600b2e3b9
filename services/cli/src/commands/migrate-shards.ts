// flotilla migrate-shards: the sessions of a stopped fleet in another number of turn-step shards.
import { moveJournal } from "@flotilla/fleet";
import { Command } from "commander";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";

export function migrateShardsCommand(context: Context): Command {
  return new Command("migrate-shards")
    .description("move the sessions of a stopped fleet to another number of turn-step shards (TURN_SHARDS)")
    .requiredOption("--to <n>", "the new number; the old one takes back a move that has not ended")
    .action(async ({ to }: { to: string }, command: Command) => {
      const { terminal, home, env } = context;
      const interrupted = onInterrupt();
      const moved = await moveJournal({
        home,
        env,
        to: Number(to),
        report: terminal.note,
        beforeChange() {
          if (!interrupted.aborted) return;
          throw new CliError("interrupted; nothing is lost, run the same command again", "INTERRUPTED");
        },
      });
      if (context.isJson(command)) return terminal.print(JSON.stringify(moved));
      const sessions = `${moved.moved} of ${moved.sessions} sessions`;
      terminal.print(
        moved.from === moved.to
          ? `the journal has ${moved.to} shards, there is nothing to move`
          : `moved ${sessions} from ${moved.from} to ${moved.to} shards; start the fleet with TURN_SHARDS=${moved.to}`,
      );
    });
}

/** The first signal ends it between two changes, the second at once. */
function onInterrupt(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}
