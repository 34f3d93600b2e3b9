// One direct batch read with a deadline; nothing to return is an empty answer, not an error.
import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream";

type BatchQuery = { multi_last: string[] } | { seq: number; next_by_subj: string; batch: number };

/** Throws when the answer does not come whole within `timeoutMs`: the server may have died in the middle of it. */
export async function readBatch(
  jsm: JetStreamManager,
  stream: string,
  query: BatchQuery,
  timeoutMs = 10_000,
): Promise<StoredMsg[]> {
  const messages: StoredMsg[] = [];
  const iterator =
    "multi_last" in query
      ? await jsm.direct.getLastMessagesFor(stream, query)
      : await jsm.direct.getBatch(stream, query);
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`a direct read of ${stream} did not end within ${timeoutMs} ms`));
    }, timeoutMs);
  });
  const collect = async (): Promise<void> => {
    for await (const message of iterator) messages.push(message);
  };
  try {
    await Promise.race([collect(), deadline]);
  } catch (error) {
    if (!isEmptyAnswer(error)) throw error;
  } finally {
    clearTimeout(timer);
  }
  return messages;
}

/** The client throws `message not found` (404) when there is nothing (more) to return. */
function isEmptyAnswer(error: unknown): boolean {
  return error instanceof Error && /message not found|no (results|messages)/i.test(error.message);
}
