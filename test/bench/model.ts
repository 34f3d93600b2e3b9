// The two models of the measured turns: the scripted provider without a network, and the upstream over HTTP.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

export type ModelName = "scripted" | "upstream";

/** Five model calls, four tool calls: nine steps. */
export const toolCalls = 4;
export const stepsPerTurn = 2 * toolCalls + 1;

export function turnBody(
  model: ModelName,
  wish: { tools: number; tokens?: number; ttft?: number; delay?: number },
): object {
  const functions = ["demo::echo"];
  if (model === "scripted") return { provider: "scripted", model: "play", functions, text: scriptOf(wish.tools) };
  const words = Object.entries(wish).map(([name, value]) => `${name}=${value}`);
  return { provider: "openai", model: "gpt-fixture-1", functions, text: `${words.join(" ")} go` };
}

function scriptOf(tools: number): string {
  const calls = Array.from({ length: tools }, (_, index) => `call demo::echo {"text":"step ${index + 1}"}`);
  return [...calls, `say done after ${tools} tools`].join("\n---\n");
}

export interface RunningUpstream {
  readonly url: string;
  stop(): void;
}

export async function startUpstream(): Promise<RunningUpstream> {
  const child = fork(fileURLToPath(new URL("upstream.ts", import.meta.url)), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once("message", (message) => resolve((message as { port: number }).port));
    child.once("exit", (code) => reject(new Error(`the upstream ended with ${code}`)));
  });
  return { url: `http://127.0.0.1:${port}/v1`, stop: () => void child.kill() };
}
