import { describe, expect, it } from "vitest";
import { fakeClock } from "./fake-clock.ts";

describe("fakeClock", () => {
  it("stands still until it is moved, and wakes sleepers in the order of their times", async () => {
    const clock = fakeClock(1_000);
    const woken: string[] = [];
    void clock.sleep(200).then(() => woken.push(`b at ${clock.now()}`));
    void clock.sleep(100).then(() => woken.push(`a at ${clock.now()}`));
    await clock.advance(99);
    expect(woken).toEqual([]);
    await clock.advance(101);
    expect(woken).toEqual(["a at 1100", "b at 1200"]);
    expect([clock.now(), clock.sleeping]).toEqual([1_200, 0]);
  });

  it("wakes those that fall asleep while it is moved", async () => {
    const clock = fakeClock(0);
    let rounds = 0;
    const loop = async (): Promise<void> => {
      while (rounds < 3) {
        await clock.sleep(10);
        rounds += 1;
      }
    };
    const looping = loop();
    await clock.advance(30);
    await looping;
    expect(rounds).toBe(3);
  });

  it("ends a sleep at once when its signal aborts", async () => {
    const clock = fakeClock();
    const abort = new AbortController();
    const sleeping = clock.sleep(1_000, abort.signal);
    abort.abort();
    await sleeping;
    await clock.sleep(1_000, abort.signal);
    expect(clock.sleeping).toBe(0);
  });
});
