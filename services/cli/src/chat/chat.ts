// The chat loop: reads lines, runs turns, and turns Ctrl-C into an abort first and an exit second.
import type { SentEvent } from "@flotilla/client";
import type { Terminal } from "../terminal.ts";
import { Conversation, type ConversationOptions } from "./conversation.ts";
import { type LineInput, type LineInputOptions, lineInput } from "./line-input.ts";
import { turnView } from "./turn-view.ts";

export interface ChatOptions extends Pick<ConversationOptions, "api" | "sessionId" | "turnOptions"> {
  readonly terminal: Terminal;
  /** Prints events as JSON lines instead of text. */
  readonly isJson: boolean;
  readonly stdin: LineInputOptions["input"];
}

/** Ends at the end of the input, at the second Ctrl-C, or when a turn waits for a decision that nobody here can take. */
export async function chat(options: ChatOptions): Promise<void> {
  const { terminal, stdin, sessionId, isJson } = options;
  const view = turnView(terminal);
  const show = (event: SentEvent): void => (isJson ? terminal.print(JSON.stringify(event)) : view.show(event));
  const noteFailure = (error: unknown): void => terminal.note(`! ${error instanceof Error ? error.message : error}`);
  const conversation = new Conversation({ ...options, onEvent: show, ask: (question) => lines.next(question) });
  const interrupt = interrupter({ conversation, terminal, noteFailure, lines: () => lines });
  const lines = lineInput({
    input: stdin,
    output: process.stderr,
    onUnasked: (line) => line.trim() !== "" && conversation.steer(line).catch(noteFailure),
    onInterrupt: interrupt,
  });
  process.on("SIGINT", interrupt);
  try {
    terminal.note(`session ${sessionId} (Ctrl-C aborts a turn, a second one quits; Ctrl-D ends)`);
    await converse(conversation, lines, options);
  } finally {
    process.off("SIGINT", interrupt);
    lines.close();
  }
}

async function converse(
  conversation: Conversation,
  lines: LineInput,
  { terminal, sessionId }: ChatOptions,
): Promise<void> {
  let outcome = await conversation.resume();
  while (outcome !== "parked") {
    const text = await lines.next("you> ");
    if (text === null) return;
    if (text.trim() === "") continue;
    outcome = await conversation.say(text);
  }
  terminal.note(`the turn waits for a decision: flotilla show ${sessionId}, then flotilla approve or deny`);
}

interface InterruptOptions {
  readonly conversation: Conversation;
  readonly terminal: Terminal;
  readonly noteFailure: (error: unknown) => void;
  readonly lines: () => LineInput;
}

const interruptedExitCode = 130;

function interrupter({ conversation, terminal, noteFailure, lines }: InterruptOptions): () => void {
  let isAborting = false;
  return () => {
    if (!conversation.isRunning) return lines().close();
    if (isAborting) process.exit(interruptedExitCode);
    isAborting = true;
    terminal.note("aborting the turn (once more: quit)");
    lines().cancel();
    conversation
      .abort()
      .catch(noteFailure)
      .finally(() => {
        isAborting = false;
      });
  };
}
