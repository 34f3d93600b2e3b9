// Work for one consumer, in order, with its weight counted.

interface Item<T> {
  readonly value: T;
  readonly bytes: number;
}

export class WorkQueue<T> {
  readonly #items: Item<T>[] = [];
  #bytes = 0;
  #wake: (() => void) | null = null;
  #isClosed = false;

  get bytes(): number {
    return this.#bytes;
  }

  push(value: T, bytes = 0): void {
    if (this.#isClosed) return;
    this.#items.push({ value, bytes });
    this.#bytes += bytes;
    this.#wake?.();
  }

  /** The next item; undefined once the queue is closed. */
  async next(): Promise<T | undefined> {
    while (this.#items.length === 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    if (this.#isClosed) return undefined;
    const item = this.#items.shift();
    this.#bytes -= item?.bytes ?? 0;
    return item?.value;
  }

  close(): void {
    this.#isClosed = true;
    this.#items.length = 0;
    this.#bytes = 0;
    this.#wake?.();
  }
}
