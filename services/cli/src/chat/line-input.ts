// Lines from a person or a pipe: asked for one at a time. A person's line that nobody asked for goes to `onUnasked`.
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

export interface LineInput {
  /** The next line; null at the end of the input. */
  next(prompt: string): Promise<string | null>;
  /** Answers an open question with an empty line. */
  cancel(): void;
  close(): void;
}

export interface LineInputOptions {
  readonly input: Readable & { isTTY?: boolean };
  /** Where a prompt is shown to a person. */
  readonly output: Writable;
  readonly onUnasked: (line: string) => void;
  /** Ctrl-C at a terminal. */
  readonly onInterrupt: () => void;
}

export function lineInput(options: LineInputOptions): LineInput {
  const isTty = options.input.isTTY === true;
  const lines = createInterface({
    input: options.input,
    ...(isTty ? { output: options.output } : {}),
    terminal: isTty,
  });
  const waiting: string[] = [];
  let asked: ((line: string | null) => void) | null = null;
  let isClosed = false;

  const answer = (line: string | null): void => {
    const resolve = asked;
    asked = null;
    resolve?.(line);
  };
  lines.on("line", (line) => {
    if (asked !== null) answer(line);
    else if (isTty) options.onUnasked(line);
    else waiting.push(line);
  });
  lines.on("close", () => {
    isClosed = true;
    answer(null);
  });
  lines.on("SIGINT", options.onInterrupt);

  return {
    next(prompt) {
      const ready = waiting.shift();
      if (ready !== undefined) return Promise.resolve(ready);
      if (isClosed) return Promise.resolve(null);
      if (isTty) {
        lines.setPrompt(prompt);
        lines.prompt();
      }
      return new Promise((resolve) => {
        asked = resolve;
      });
    },
    cancel: () => answer(""),
    close: () => lines.close(),
  };
}
