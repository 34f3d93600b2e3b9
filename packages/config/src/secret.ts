// A secret value: prints, inspects and serialises as redacted; only `reveal` gives it away.
import { readFileSync } from "node:fs";
import { inspect } from "node:util";

export const redacted = "[REDACTED]";

export class Secret {
  readonly #read: () => string;

  constructor(read: () => string) {
    this.#read = read;
  }

  static of(value: string): Secret {
    return new Secret(() => value);
  }

  /** Read again on every use, so that a rotated file counts without a restart. */
  static fromFile(path: string): Secret {
    return new Secret(() => readFileSync(path, "utf8").trim());
  }

  reveal(): string {
    return this.#read();
  }

  toString(): string {
    return redacted;
  }

  toJSON(): string {
    return redacted;
  }

  [inspect.custom](): string {
    return redacted;
  }
}
