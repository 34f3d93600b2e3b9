// The demo's orders: made from the order id, the same each time. Pure.
import { createHash } from "node:crypto";

export interface Order {
  readonly order: string;
  readonly item: string;
  readonly status: string;
  readonly total: number;
  readonly currency: "USD";
}

const items = ["a desk lamp", "a coffee grinder", "a pair of headphones", "a rain jacket", "a chess set"] as const;
const statuses = ["processing", "shipped", "delivered"] as const;

export function orderOf(id: string): Order {
  const digest = digestOf(id);
  const cents = 500 + (digest.readUInt32BE(0) % 20_000);
  return {
    order: id,
    item: pick(items, digest[4]),
    status: pick(statuses, digest[5]),
    total: cents / 100,
    currency: "USD",
  };
}

/** A reference number that is the same for the same request. */
export function referenceOf(prefix: string, ...parts: readonly string[]): string {
  return `${prefix}-${digestOf(JSON.stringify(parts)).toString("hex").slice(0, 10).toUpperCase()}`;
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function pick<const T extends readonly [string, ...string[]]>(from: T, byte: number | undefined): string {
  return from[(byte ?? 0) % from.length] ?? from[0];
}
