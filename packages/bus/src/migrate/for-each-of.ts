// The same work on many things, some of them at a time.

const atOnce = 16;

/** The first failure ends it, once what runs has ended. */
export async function forEachOf<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  let isFailed = false;
  const drain = async (): Promise<void> => {
    for (let next = queue.next(); next.done !== true && !isFailed; next = queue.next()) {
      try {
        await work(next.value);
      } catch (error) {
        isFailed = true;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: atOnce }, drain));
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}
