// Recently used bodies in memory, oldest out first, bounded by their total size.
export class RecentBodies {
  readonly #limitBytes: number;
  readonly #bodies = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get(name: string): Uint8Array | undefined {
    const body = this.#bodies.get(name);
    if (body === undefined) return undefined;
    this.#bodies.delete(name);
    this.#bodies.set(name, body);
    return body;
  }

  /** A body larger than a quarter of the limit would push out everything else and is not kept. */
  set(name: string, body: Uint8Array): void {
    if (this.#bodies.has(name) || body.length > this.#limitBytes / 4) return;
    this.#bodies.set(name, body);
    this.#bytes += body.length;
    for (const [oldest, old] of this.#bodies) {
      if (this.#bytes <= this.#limitBytes) return;
      this.#bodies.delete(oldest);
      this.#bytes -= old.length;
    }
  }
}
