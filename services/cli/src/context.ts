// What every command gets: the global options, a client for the front door, and the terminal.
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { type ApiClient, apiClient } from "@flotilla/client";
import type { Env } from "@flotilla/config";
import { runDirectory } from "@flotilla/fleet";
import type { Command } from "commander";
import type { Terminal } from "./terminal.ts";

export interface Surroundings {
  readonly env: Env;
  readonly terminal: Terminal;
  /** What a person types, or a pipe. */
  readonly stdin: Readable & { isTTY?: boolean };
}

export interface Context extends Surroundings {
  readonly home: string;
  /** Port of the first harness of a fleet that is started here. */
  readonly port: number;
  isJson(command: Command): boolean;
  api(command: Command): ApiClient;
}

interface GlobalOptions {
  readonly url?: string;
  readonly token?: string;
  readonly json?: boolean;
}

const defaultPort = 7440;

export function createContext(program: Command, surroundings: Surroundings): Context {
  const { env } = surroundings;
  const home = resolve(nonEmpty(env.FLOTILLA_HOME) ?? ".flotilla");
  const optionsOf = (command: Command): GlobalOptions => ({ ...program.opts(), ...command.opts() });
  return {
    ...surroundings,
    home,
    port: portOf(env),
    isJson: (command) => optionsOf(command).json === true,
    api(command) {
      const { url, token } = optionsOf(command);
      return apiClient({ url: url ?? urlOf(env, home), token: token ?? nonEmpty(env.FLOTILLA_TOKEN) });
    },
  };
}

/** The one that is named; else the port that is named; else the fleet of this home; else the usual port. */
function urlOf(env: Env, home: string): string {
  const named = nonEmpty(env.FLOTILLA_URL);
  if (named !== undefined) return named;
  const own = nonEmpty(env.FLOTILLA_PORT) === undefined ? runDirectory(home).readAddress("http") : null;
  return own ?? `http://127.0.0.1:${portOf(env)}`;
}

function portOf(env: Env): number {
  const text = nonEmpty(env.FLOTILLA_PORT);
  if (text === undefined) return defaultPort;
  const port = Number(text);
  // Not a port: kept, so that the harness's own check names it.
  return Number.isInteger(port) ? port : Number.NaN;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
