// Working contexts of recent sessions, newest use last; only ever an older state of the journal, so always safe to extend.
import type { SessionView } from "@flotilla/contracts";

export class ViewCache {
  readonly #views = new Map<string, SessionView>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(sessionId: string): SessionView | undefined {
    const view = this.#views.get(sessionId);
    if (view !== undefined) this.put(view);
    return view;
  }

  put(view: SessionView): void {
    this.#views.delete(view.session_id);
    this.#views.set(view.session_id, view);
    if (this.#views.size > this.#limit) {
      const oldest = this.#views.keys().next().value;
      if (oldest !== undefined) this.#views.delete(oldest);
    }
  }

  drop(sessionId: string): void {
    this.#views.delete(sessionId);
  }

  cursor(sessionId: string): number {
    return this.#views.get(sessionId)?.tail?.commit.cursor ?? 0;
  }
}
