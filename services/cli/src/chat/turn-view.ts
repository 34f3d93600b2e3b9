// What a person sees of a turn: events in, text out.
import type { SentEvent } from "@flotilla/client";
import type { AgentMessage, WireEvent } from "@flotilla/contracts";
import { brief } from "../table.ts";
import type { Terminal } from "../terminal.ts";
import { textIn } from "../transcript.ts";

export interface TurnView {
  show(event: SentEvent): void;
}

const dim = (text: string, isTty: boolean): string => (isTty ? `\u001b[2m${text}\u001b[0m` : text);

export function turnView(terminal: Terminal): TurnView {
  let isMidLine = false;
  const text = (piece: string): void => {
    terminal.write(piece);
    if (piece !== "") isMidLine = !piece.endsWith("\n");
  };
  const line = (content: string): void => {
    if (isMidLine) terminal.write("\n");
    isMidLine = false;
    terminal.print(content);
  };
  const end = (message: AgentMessage, isStreamed: boolean): void => {
    if (message.role !== "assistant") return;
    if (!isStreamed) text(textIn(message.content.filter((block) => block.type === "text")));
    if (isMidLine) text("\n");
    if (message.stop_reason === "error") line(`! ${message.error_message ?? "the model call failed"}`);
    if (message.stop_reason === "aborted") line("! aborted");
  };
  return {
    show({ data }) {
      const event = data as WireEvent;
      if (event.type === "message_update" && event.kind === "text") text(event.delta);
      else if (event.type === "message_update" && event.kind === "thinking") text(dim(event.delta, terminal.isTty));
      else if (event.type === "message_complete") end(event.message, event.body_streamed);
      else if (event.type === "message_aborted") line(`! this answer was given up (${event.reason})`);
      else if (event.type === "function_execution_start") line(`→ ${event.function_id} ${argumentsOf(event.args)}`);
      else if (event.type === "function_execution_end") line(resultLine(event));
      else if (event.type === "approval_decided") line(`• ${event.function_id}: ${event.decision}`);
      else if (event.type === "agent_end" && event.reason !== "end") line(`(turn ended: ${event.reason})`);
    },
  };
}

function argumentsOf(args: unknown): string {
  return brief(JSON.stringify(args) ?? "", 200);
}

function resultLine(event: WireEvent & { type: "function_execution_end" }): string {
  const mark = event.is_error ? "✗" : "✓";
  return `${mark} ${event.function_id} ${brief(textIn(event.result.content), 200)}`;
}
