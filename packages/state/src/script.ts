// Running a Lua script by its digest; a Redis that does not know it (restart, SCRIPT FLUSH) gets the text.
import { createHash } from "node:crypto";
import type { Redis } from "ioredis";
import type { Connection } from "./connection.ts";

export type Script = (
  connection: Connection,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

export function script(text: string): Script {
  const digest = createHash("sha1").update(text).digest("hex");
  const send = async (redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> => {
    try {
      return await redis.evalsha(digest, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return redis.eval(text, keys.length, ...keys, ...args);
    }
  };
  return (connection, keys, args) => connection.run((redis) => send(redis, keys, args));
}
