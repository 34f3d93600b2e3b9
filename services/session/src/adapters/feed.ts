// Pulling commits of one shard from the shared durable consumer, in small batches, until told to pause.
import type { Logger } from "@flotilla/telemetry";
import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";

export interface FeedOptions {
  readonly logger: Logger;
  /** Begins to pull; called again after a pause, a stall or an unexpected end. */
  readonly open: (onMessage: (message: JsMsg) => void) => Promise<ConsumerMessages>;
  /** Contract: settles every message of the batch (ack or nak); never rejects. */
  readonly handle: (messages: JsMsg[]) => Promise<void>;
}

export interface Feed {
  /** Pulls from now on; does nothing while it already pulls. */
  resume(): void;
  /** Stops pulling; what was delivered and not yet handled is given back. */
  pause(delayMs: number): void;
  /** Ends the present pull and starts a new one. */
  restart(): void;
  /** Stops for good and waits for the batch in hand. */
  stop(): Promise<void>;
}

const batchSize = 128;
/** A turn's commits come close together: what comes within this time is written together. */
const gatherMs = 5;
const reopenMs = 500;

export function createFeed(options: FeedOptions): Feed {
  const { logger } = options;
  let isWanted = false;
  let isStopped = false;
  let messages: ConsumerMessages | null = null;
  let buffer: JsMsg[] = [];
  let working: Promise<void> | null = null;
  let opening: Promise<void> | null = null;
  let retry: NodeJS.Timeout | undefined;

  const work = async (): Promise<void> => {
    while (buffer.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, gatherMs));
      await options.handle(buffer.splice(0, batchSize));
    }
  };
  const onMessage = (message: JsMsg): void => {
    if (!isWanted) {
      message.nak();
      return;
    }
    buffer.push(message);
    working ??= work().finally(() => {
      working = null;
    });
  };
  const reopenSoon = (error: unknown): void => {
    logger.warn("the projector's consumer ended, pulling again soon", { error: String(error) });
    clearTimeout(retry);
    retry = setTimeout(open, reopenMs);
  };
  const open = (): void => {
    if (!isWanted || messages !== null || opening !== null) return;
    opening = options
      .open(onMessage)
      .then((opened) => {
        messages = opened;
        if (!isWanted) return close();
        void opened.closed().then((error) => {
          if (messages !== opened) return;
          messages = null;
          if (isWanted) reopenSoon(error ?? "closed");
        });
      }, reopenSoon)
      .finally(() => {
        opening = null;
      });
  };
  const close = (): void => {
    const closing = messages;
    messages = null;
    closing?.stop();
  };
  return {
    resume() {
      if (isStopped) return;
      isWanted = true;
      open();
    },
    pause(delayMs) {
      isWanted = false;
      clearTimeout(retry);
      close();
      for (const message of buffer.splice(0)) message.nak(delayMs);
    },
    restart() {
      close();
      open();
    },
    async stop() {
      isStopped = true;
      isWanted = false;
      clearTimeout(retry);
      close();
      for (const message of buffer.splice(0)) message.nak();
      await opening;
      await working;
      buffer = [];
    },
  };
}
