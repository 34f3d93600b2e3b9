// Where the server programs come from: PATH, the repository's .tools, or Docker.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { FleetError } from "./fleet-error.ts";
import { repositoryRoot } from "./worker-folders.ts";

export interface ServerProgram {
  readonly command: string;
  readonly args: readonly string[];
  /** Runs before every start: a container of the same name may be left of a killed one. */
  readonly prepare?: () => Promise<void>;
}

export interface ServerRequest {
  readonly name: "nats-server" | "redis-server";
  readonly minimum: readonly [number, number];
  readonly image: string;
  readonly args: readonly string[];
  /** What makes the server listen on every address of its container. */
  readonly openArgs: readonly string[];
  readonly port: number;
  /** Folder that the server reads and writes; mounted under the same path. */
  readonly folder: string;
}

export async function serverProgram(request: ServerRequest): Promise<ServerProgram> {
  const binary = await findBinary(request.name, request.minimum);
  if (binary !== null) return { command: binary, args: request.args };
  if (await succeeds("docker", ["version", "--format", "{{.Server.Version}}"])) return dockerProgram(request);
  throw new FleetError(`${request.name} ${request.minimum.join(".")} or newer is not installed; run: make setup`);
}

async function findBinary(name: string, minimum: readonly [number, number]): Promise<string | null> {
  const folders = [...(process.env.PATH ?? "").split(delimiter), join(repositoryRoot, ".tools", "bin")];
  const files = [...new Set(folders)].map((folder) => join(folder, name)).filter((file) => existsSync(file));
  for (const file of files) {
    if (isAtLeast(await outputOf(file, ["--version"]), minimum)) return file;
  }
  return null;
}

export function dockerProgram(request: ServerRequest): Required<ServerProgram> {
  const container = `flotilla-${request.name}-${request.port}`;
  const user = `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`;
  const run = ["run", "--rm", "--init", "--name", container, "--user", user];
  const reach = ["-p", `127.0.0.1:${request.port}:${request.port}`, "-v", `${request.folder}:${request.folder}`];
  return {
    command: "docker",
    args: [...run, ...reach, request.image, request.name, ...request.args, ...request.openArgs],
    prepare: async () => void (await succeeds("docker", ["rm", "--force", container])),
  };
}

export function isAtLeast(versionText: string | null, minimum: readonly [number, number]): boolean {
  const match = /(\d+)\.(\d+)/.exec(versionText ?? "");
  if (match === null) return false;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  return major > minimum[0] || (major === minimum[0] && minor >= minimum[1]);
}

async function succeeds(command: string, args: readonly string[]): Promise<boolean> {
  return (await outputOf(command, args)) !== null;
}

function outputOf(command: string, args: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(command, args, { timeout: 30_000 }, (error, stdout) => resolve(error === null ? stdout : null));
  });
}
