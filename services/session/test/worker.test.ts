// The whole worker as it is deployed: served on the bus with its own user, found and called by routing.
import { sessionGet, sessionList, sessionMessages } from "@flotilla/contracts";
import { until } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { definition } from "../src/worker.ts";
import { type Servers, silent, startServers, writeTurn } from "./support.ts";

let servers: Servers;
let worker: WorkersHandle;

beforeAll(async () => {
  servers = await startServers();
  await servers.redis.kill("SIGKILL");
  worker = runWorkers({
    definitions: [definition],
    env: {
      NATS_URL: servers.nats.address,
      NATS_CREDENTIALS_FILE: servers.nats.credentialsFile,
      REDIS_URL: servers.redis.url,
    },
    logger: silent,
  });
  await worker.ready();
});
afterAll(async () => {
  await worker.stop();
  await servers.stop();
});

describe("the session worker on the bus", () => {
  it("is ready and degraded without Redis, answers from the journal, and refuses only the list", async () => {
    await writeTurn(servers.operator, "s-1");
    expect(await worker.readiness()).toMatchObject({
      status: "degraded",
      workers: [{ ready: true, degraded: ["redis"] }],
    });
    expect(await servers.operator.call(sessionGet, { session_id: "s-1" })).toMatchObject({
      state: "stopped",
      cost_usd: 0.25,
    });
    const { messages } = await servers.operator.call(sessionMessages, { session_id: "s-1" });
    expect(messages.map((row) => row.entry_id)).toEqual(["s-1-e1", "s-1-e2"]);
    await expect(servers.operator.call(sessionList, {})).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  it("lists as soon as Redis is there", async () => {
    await servers.redis.restart();
    const listed = await until(() => servers.operator.call(sessionList, {}), { what: "the list is there" });
    expect(listed).toMatchObject({ total: 1, sessions: [{ session_id: "s-1" }] });
    await until(async () => (await worker.readiness()).status === "ready", { what: "it is whole again" });
  });

  it("names the session that is not there, over the wire", async () => {
    await expect(servers.operator.call(sessionGet, { session_id: "nobody" })).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
      field: "session_id",
    });
  });
});
