// A deadline on what the bus may take: a frozen bus must not hold an HTTP request for ever.
import { FlotillaError } from "@flotilla/errors";

/** Rejects with BUS_UNAVAILABLE after `ms`; the work itself goes on and its late fate is ignored. */
export async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new FlotillaError("BUS_UNAVAILABLE", `${what} took longer than ${ms} ms`, { retryAfterMs: 2_000 }));
    }, ms);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
