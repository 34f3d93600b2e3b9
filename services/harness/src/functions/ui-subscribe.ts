// ui::subscribe and ui::unsubscribe: which browsers get pushes of which sessions.
import { uiSubscribe, uiUnsubscribe } from "@flotilla/contracts";
import { type Implementation, implement } from "@flotilla/worker";
import type { UiSubscriptions } from "../adapters/ui-subscriptions.ts";

export function makeUiSubscribe(subscriptions: UiSubscriptions): Implementation {
  return implement(uiSubscribe, async (_context, { browser_id, session_id }) => ({
    ok: true as const,
    total_browsers: await subscriptions.subscribe(browser_id, session_id ?? null),
  }));
}

export function makeUiUnsubscribe(subscriptions: UiSubscriptions): Implementation {
  return implement(uiUnsubscribe, (_context, { browser_id, session_id }) => ({
    ok: true as const,
    total_browsers: subscriptions.unsubscribe(browser_id, session_id ?? null),
  }));
}
