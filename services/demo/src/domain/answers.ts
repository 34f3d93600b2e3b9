// What the demo functions answer; tolerant of any arguments. Pure.
import { sha256Hex } from "@flotilla/contracts";

const maxRepeats = 1_000;
const maxSleepMs = 3_600_000;

export function echoOf(args: { text?: unknown; repeat?: unknown }): { text: string } {
  const text = typeof args.text === "string" ? args.text : args.text === undefined ? "" : JSON.stringify(args.text);
  return { text: text.repeat(whole(args.repeat, 1, maxRepeats)) };
}

/** The same order always has the same data. */
export function orderOf(order: unknown): { order: string; status: string; total_usd: number; items: number } {
  const id = nameOf(order);
  const seed = Number.parseInt(sha256Hex(id).slice(0, 6), 16);
  const statuses = ["paid", "packed", "shipped", "delivered"];
  return {
    order: id,
    status: statuses[seed % statuses.length] ?? "paid",
    total_usd: 10 + (seed % 9_000) / 100,
    items: 1 + (seed % 5),
  };
}

export function shipmentOf(order: unknown): { order: string; shipped: true; tracking: string } {
  const id = nameOf(order);
  return { order: id, shipped: true, tracking: `FL-${sha256Hex(id).slice(0, 10).toUpperCase()}` };
}

export function refundOf(args: { order?: unknown; amount?: unknown }): {
  order: string;
  refunded: true;
  amount: unknown;
} {
  return { order: nameOf(args.order), refunded: true, amount: args.amount ?? null };
}

/** Milliseconds to sleep; what is not a number is 0. */
export function sleepOf(ms: unknown): number {
  return whole(ms, 0, maxSleepMs);
}

export function failureCodeOf(code: unknown): string {
  return typeof code === "string" && /^[A-Za-z0-9_.-]{1,64}$/.test(code) ? code : "DEMO_FAILURE";
}

function nameOf(order: unknown): string {
  return typeof order === "string" || typeof order === "number" ? String(order) : "unknown";
}

function whole(value: unknown, fallback: number, limit: number): number {
  const number = Number(value ?? fallback);
  return Number.isFinite(number) ? Math.min(Math.max(0, Math.floor(number)), limit) : fallback;
}
