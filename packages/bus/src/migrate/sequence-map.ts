// Which sequence each message of one session got in its new stream. Pure.

export class SequenceMap {
  readonly #from: number[] = [];
  readonly #to: number[] = [];

  /** In ascending order on both sides. */
  add(from: number, to: number): void {
    this.#from.push(from);
    this.#to.push(to);
  }

  /** Of exactly this message; null when it was not moved. */
  of(from: number): number | null {
    const index = this.#last(from);
    return index >= 0 && this.#from[index] === from ? (this.#to[index] ?? null) : null;
  }

  /** What "everything up to here" is in the new stream: of the newest message at or before it; 0 before the first. */
  upTo(from: number): number {
    return this.#to[this.#last(from)] ?? 0;
  }

  /** Index of the newest message at or before `from`; -1 when there is none. */
  #last(from: number): number {
    let low = 0;
    let high = this.#from.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#from[middle] ?? 0) <= from) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
