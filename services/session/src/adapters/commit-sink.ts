// From delivered commits to Redis. A commit is acknowledged only after its write (P1).
import type { Bus } from "@flotilla/bus";
import { subjects } from "@flotilla/contracts";
import { isFlotillaError } from "@flotilla/errors";
import { type ProjectionWrite, projectionOf, type State } from "@flotilla/state";
import type { Logger } from "@flotilla/telemetry";
import type { JsMsg } from "@nats-io/jetstream";

export type SinkOutcome = "applied" | "older" | "returned" | "unreadable";

export interface CommitSinkOptions {
  readonly bus: Bus;
  readonly state: State;
  readonly logger: Logger;
  readonly retryMs: number;
  /** Redis does not answer. */
  readonly onStoreAway: () => void;
  /** Redis answers and has lost the projection. */
  readonly onLost: () => void;
  readonly onProjected?: ((outcome: SinkOutcome) => void) | undefined;
}

const maxDeliveries = 5;

/** Settles every message; never rejects. */
export function createCommitSink(options: CommitSinkOptions): (messages: readonly JsMsg[]) => Promise<void> {
  const sink = async (message: JsMsg): Promise<void> => {
    const outcome = await project(options, message);
    options.onProjected?.(outcome);
  };
  return async (messages) => {
    await Promise.all(messages.map(sink));
  };
}

async function project(options: CommitSinkOptions, message: JsMsg): Promise<SinkOutcome> {
  let write: ProjectionWrite | null;
  try {
    write = await read(options.bus, message);
  } catch (error) {
    return unreadable(options, message, error);
  }
  const applied = write === null ? "older" : await apply(options, write);
  if (applied === "applied" || applied === "older") {
    message.ack();
    return applied;
  }
  message.nak(options.retryMs);
  return "returned";
}

async function read(bus: Bus, message: JsMsg): Promise<ProjectionWrite | null> {
  const stored = await bus.journal.decodeCommit(message.subject, message.seq, message.data);
  return stored === null ? null : projectionOf(stored);
}

async function apply(options: CommitSinkOptions, write: ProjectionWrite): Promise<"applied" | "older" | "unwritten"> {
  try {
    const applied = await options.state.projection.apply(write);
    if (applied === "applied" || applied === "older") return applied;
    options.onLost();
  } catch (error) {
    if (!isFlotillaError(error)) options.logger.error("a commit could not be projected", { error: String(error) });
    options.onStoreAway();
  }
  return "unwritten";
}

/** A commit nobody can read must not hold up the others for ever: after some deliveries it goes to the dead letters. */
async function unreadable(options: CommitSinkOptions, message: JsMsg, error: unknown): Promise<SinkOutcome> {
  const { bus, logger, retryMs } = options;
  const { deliveryCount } = message.info;
  if (deliveryCount < maxDeliveries) {
    message.nak(retryMs * 2 ** deliveryCount);
    return "returned";
  }
  const reason = { subject: message.subject, seq: message.seq, error: String(error) };
  try {
    await bus.js.publish(subjects.dead(bus.worker), JSON.stringify({ ...reason, at: Date.now() }));
  } catch (cause) {
    logger.warn("a dead letter was not stored, it is tried again", { error: String(cause) });
    message.nak(retryMs * 2 ** maxDeliveries);
    return "returned";
  }
  logger.error("a commit cannot be read and is left out of the projection", reason);
  message.term("unreadable");
  return "unreadable";
}
