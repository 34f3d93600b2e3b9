// What the tests of this package share.
import type { Logger } from "@flotilla/telemetry";
import { Redis } from "ioredis";

export const silent: Logger = {
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  with: () => silent,
};

/** Every generation key and its content, generation names left out, in a comparable form. */
export async function dump(url: string): Promise<Record<string, unknown>> {
  const redis = new Redis(url);
  try {
    const result: Record<string, unknown> = {};
    for (const key of (await redis.keys("flotilla:p????????:*")).sort()) {
      const name = key.replace(/^flotilla:p[0-9a-f]{8}:/, "");
      if (name in result) throw new Error(`two generations hold ${name}`);
      const isSet = (await redis.type(key)) === "zset";
      result[name] = isSet
        ? await redis.zrangebyscore(key, "-inf", "+inf", "WITHSCORES")
        : sorted(await redis.hgetall(key));
    }
    return result;
  } finally {
    redis.disconnect();
  }
}

function sorted(hash: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(hash).sort(([a], [b]) => (a < b ? -1 : 1)));
}
