// One waiter's bell: rings are remembered until the next wait.
export class Wake {
  #rung = false;
  #resolve: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#resolve?.();
  }

  /** Resolves at the next ring (or at once when one is remembered), or after `timeoutMs`; answers whether it rang. */
  async wait(timeoutMs: number): Promise<boolean> {
    if (!this.#rung) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
        timer = setTimeout(resolve, timeoutMs);
      });
      clearTimeout(timer);
      this.#resolve = null;
    }
    const hasRung = this.#rung;
    this.#rung = false;
    return hasRung;
  }
}
