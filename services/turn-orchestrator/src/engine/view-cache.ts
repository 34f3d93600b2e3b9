// Working contexts of recent sessions, newest use last; only ever an older state of the journal, so always safe to extend.
import type { SessionView } from "@flotilla/contracts";

interface Kept {
  readonly view: SessionView;
  /** Size of the entries that were there at its last use; those that come later are counted at the next. */
  readonly chars: number;
  readonly counted: number;
}

export class ViewCache {
  readonly #kept = new Map<string, Kept>();
  readonly #limit: number;
  readonly #limitChars: number;
  #chars = 0;

  /** Few sessions, or few large ones: whichever limit is reached first. */
  constructor(limit: number, limitChars = 128 * 1024 * 1024) {
    this.#limit = limit;
    this.#limitChars = limitChars;
  }

  get(sessionId: string): SessionView | undefined {
    const view = this.#kept.get(sessionId)?.view;
    if (view !== undefined) this.put(view);
    return view;
  }

  put(view: SessionView): void {
    const kept = this.#kept.get(view.session_id);
    const next = kept?.view === view ? counted(kept) : counted({ view, chars: 0, counted: 0 });
    this.drop(view.session_id);
    this.#kept.set(view.session_id, next);
    this.#chars += next.chars;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size === 1 || (this.#kept.size <= this.#limit && this.#chars <= this.#limitChars)) return;
      this.drop(oldest);
    }
  }

  drop(sessionId: string): void {
    this.#chars -= this.#kept.get(sessionId)?.chars ?? 0;
    this.#kept.delete(sessionId);
  }
}

function counted({ view, chars, counted: from }: Kept): Kept {
  let sum = chars;
  for (let index = from; index < view.entries.length; index++) sum += JSON.stringify(view.entries[index]).length;
  return { view, chars: sum, counted: view.entries.length };
}
