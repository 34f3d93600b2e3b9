import { createLogger } from "@flotilla/telemetry";
import { expect, it } from "vitest";
import { createFeed } from "./feed.ts";

it("stays closed once it was stopped, whoever asks it to go on", async () => {
  let opened = 0;
  const feed = createFeed({
    logger: createLogger({ level: "error", name: "test" }),
    handle: async () => {},
    open: async () => {
      opened += 1;
      return { stop: () => {}, closed: () => new Promise(() => {}) } as never;
    },
  });
  feed.resume();
  await feed.stop();
  feed.resume();
  expect(opened).toBe(1);
});
