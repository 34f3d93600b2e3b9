// Where the CLI writes: results to standard output, everything else to standard error.
export interface Terminal {
  /** A result, with a line end. */
  print(text: string): void;
  /** A piece of a result, as it is. */
  write(text: string): void;
  /** Progress, hints and errors. */
  note(text: string): void;
  readonly isTty: boolean;
}

export function processTerminal(): Terminal {
  return {
    print: (text) => void process.stdout.write(`${text}\n`),
    write: (text) => void process.stdout.write(text),
    note: (text) => void process.stderr.write(`${text}\n`),
    isTty: process.stdout.isTTY === true,
  };
}
