// What the model `demo` answers to plain talk: a friendly text, or the story of an order. Pure.
import { textOf } from "@flotilla/contracts";
import type { PlayMessage } from "./choose-play.ts";
import type { Step } from "./script.ts";

type ResultMessage = Extract<PlayMessage, { role: "function_result" }>;

const orderWord = /\borders?\b/i;
/** What follows a `#`, else the first word with a digit in it. */
const orderId = /#\s*([A-Za-z0-9][\w-]*)|\b((?=[\w-]*\d)[A-Za-z0-9][\w-]*)/;

/** `conversation` begins with the newest user message. */
export function demoSteps(conversation: readonly PlayMessage[]): readonly Step[] {
  const [asked, ...since] = conversation;
  const text = asked?.role === "user" ? textOf(asked) : "";
  if (!orderWord.test(text)) return [say(greeting(text))];
  const found = orderId.exec(text);
  const order = found?.[1] ?? found?.[2] ?? "1001";
  const results = since.filter((message) => message.role === "function_result");
  const lookup = results.find((result) => result.function_id === "demo::lookup");
  const refund = results.find((result) => result.function_id === "demo::refund");
  if (refund !== undefined) return [say(afterRefund(order, refund))];
  if (lookup === undefined) return [say(`Let me look up order ${order} for you.`), call("demo::lookup", { order })];
  if (lookup.is_error) return [say(`I am sorry, I could not look up order ${order}: ${brief(lookup)}`)];
  const { amount, words } = orderOf(lookup);
  const plan = `Found it: ${words}. I will ask for a refund of ${amount}; a person has to approve that.`;
  return [say(plan), call("demo::refund", { order, amount })];
}

function say(text: string): Step {
  return { kind: "say", text };
}

function call(functionId: string, args: unknown): Step {
  return { kind: "call", functionId, args };
}

function greeting(text: string): string {
  const heard = text.trim().replaceAll(/\s+/g, " ");
  const echo =
    heard === "" ? "" : ` You wrote: "${heard.length > 120 ? `${heard.slice(0, 120).toWellFormed()}…` : heard}".`;
  return (
    `Hello! I am Flotilla's demo model and happy to help.${echo} ` +
    "Ask me about an order and I will look it up and request a refund, which waits for your approval."
  );
}

function afterRefund(order: string, refund: ResultMessage): string {
  if (!refund.is_error) {
    const { amount } = detailsOf(refund);
    const money = typeof amount === "number" ? ` of ${amount}` : "";
    return `All done: the refund${money} for order ${order} is on its way. Is there anything else I can do for you?`;
  }
  const { status, decision } = detailsOf(refund);
  if (status === "denied")
    return `The refund for order ${order} was not approved, so nothing was paid: ${brief(refund)}`;
  if (decision === "expired") return `Nobody approved the refund for order ${order} in time, so nothing was paid.`;
  return `I am sorry, the refund for order ${order} did not go through: ${brief(refund)}`;
}

function orderOf(lookup: ResultMessage): { amount: number; words: string } {
  const { total, status, item } = detailsOf(lookup);
  const amount = typeof total === "number" && total > 0 ? total : 20;
  const what = typeof item === "string" ? item : "the order";
  return {
    amount,
    words: typeof status === "string" ? `${what}, ${status}, total ${amount}` : `${what}, total ${amount}`,
  };
}

/** What the function answered; another worker may offer it, so nothing is taken for granted. */
function detailsOf(result: ResultMessage): Record<string, unknown> {
  if (typeof result.details === "object" && result.details !== null) return result.details as Record<string, unknown>;
  return {};
}

function brief(result: ResultMessage): string {
  const text = textOf(result).replaceAll(/\s+/g, " ").trim();
  return text.length > 200 ? `${text.slice(0, 200).toWellFormed()}…` : text || "no reason was given.";
}
