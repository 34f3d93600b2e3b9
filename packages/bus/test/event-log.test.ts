import { randomId, streamNames, subjects } from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bus, connectBus, createEventLog, type EventLog } from "../src/index.ts";

let nats: StartedNats;
let bus: Bus;
let log: EventLog<{ n: number }>;

beforeAll(async () => {
  nats = await startNats();
  const logger = createLogger({ level: "silent", name: "test" });
  bus = await connectBus({ url: nats.urlFor("demo"), worker: "demo", instance: randomId(), logger });
  log = createEventLog(bus, streamNames.demoEffects);
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});

describe("an event log", () => {
  it("answers records in the order of their appends, over many pages and of the asked subjects only", async () => {
    const subject = subjects.demoEffect("s1");
    const seqs: number[] = [];
    for (let n = 0; n < 600; n++) seqs.push(await log.append(subject, { n }));
    await log.append(subjects.demoEffect("s2"), { n: -1 });
    const records = await log.read(subject);
    expect(records.map(({ seq }) => seq)).toEqual(seqs);
    expect(records.map(({ record }) => record.n)).toEqual(Array.from({ length: 600 }, (_, n) => n));
    expect(await log.read(subjects.demoEffect("*"))).toHaveLength(601);
    expect(await log.read(subjects.demoEffect("s3"))).toEqual([]);
  });

  it("stores a record once, though the server was killed while it was being appended", async () => {
    const subject = subjects.demoEffect("s4");
    for (let n = 0; n < 3; n++) {
      const appended = log.append(subject, { n });
      await nats.kill();
      await nats.restart();
      await appended;
    }
    await until(() => bus.connected, { what: "the bus is back" });
    expect((await log.read(subject)).map(({ record }) => record.n)).toEqual([0, 1, 2]);
  });

  it("gives up after its patience while the server is away", async () => {
    await nats.kill();
    const refused = expect(log.append(subjects.demoEffect("s5"), { n: 0 }, 1_500)).rejects;
    await refused.toMatchObject({ code: "BUS_UNAVAILABLE" });
    await nats.restart();
    await until(() => bus.connected, { what: "the bus is back" });
  });

  it("says at once that the bus user may not write there", async () => {
    const audit = createEventLog<object>(bus, streamNames.audit);
    await expect(audit.append(subjects.audit("policy"), {})).rejects.toMatchObject({ code: "BUS_PERMISSION" });
  });
});
