// A worker that knows nothing of us but the wire: a plain NATS client with the operator's login (wire 1).
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type StartedFleet, startFleet, until } from "@flotilla/testkit";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client, type Json, textOf } from "../fleet/client.ts";
import { resultOf, workers } from "./under-fire.ts";

let folder: string;
let fleet: StartedFleet;
let client: Client;
let nc: NatsConnection;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "flotilla-rules-"));
  const rules = join(folder, "permissions.yaml");
  await writeFile(rules, "version: 1\nrules:\n  - demo::*\n  - abacus::*\n");
  fleet = await startFleet({
    env: { FLOTILLA_PERMISSIONS: rules },
    workers,
  });
  client = new Client(fleet.url);
  const { host, username, password } = new URL(fleet.nats.url);
  nc = await connect({ servers: host, user: username, pass: password });
}, 60_000);
afterAll(async () => {
  await nc?.close();
  await fleet?.stop();
  await rm(folder, { recursive: true, force: true });
});

const instanceKey = (worker: string): string => `$KV.REGISTRY.inst.${worker}.${worker}-1`;

/** Joins by writing manifest and instance key, and answers what comes. */
async function enrol(
  worker: string,
  functions: readonly string[],
  answer: (id: string, args: Json) => unknown,
): Promise<void> {
  const at = Date.now();
  nc.subscribe(`fn.${worker}.>`, {
    queue: worker,
    callback: (_, message) => {
      const id = message.subject.split(".").slice(2).join("::");
      message.respond(JSON.stringify(answer(id, message.json<Json>())));
    },
  });
  await store(`$KV.REGISTRY.worker.${worker}`, {
    worker,
    version: "1.0.0",
    priority: 0,
    first_registered_at: at,
    functions: functions.map((id) => ({ id, request_schema: { type: "object" }, description: "adds", replay: "safe" })),
    meta: { language: "any" },
  });
  await store(instanceKey(worker), { worker, instance: `${worker}-1`, started_at: at }, { "Nats-TTL": "15s" });
}

async function store(subject: string, value: unknown, fields: Record<string, string> = {}): Promise<void> {
  const head = headers();
  for (const [name, text] of Object.entries(fields)) head.set(name, text);
  const body = value === null ? "" : JSON.stringify(value);
  const ack = await nc.request(subject, body, { headers: head, timeout: 2_000 });
  expect(ack.json<Json>()).toMatchObject({ seq: expect.any(Number) });
}

const servedBy = (functionId: string, worker: string): Promise<boolean> =>
  until(
    async () => {
      const { functions } = (await client.get("/v1/functions")).body;
      return functions.some((row: Json) => row.id === functionId && row.worker === worker && row.instances !== 0);
    },
    { what: `${functionId} is served by ${worker}` },
  );

describe("a foreign worker", () => {
  it("joins with a plain client, and an agent calls it", async () => {
    await enrol("abacus", ["abacus::add"], (_, args) => ({ sum: args.a + args.b }));
    await servedBy("abacus::add", "abacus");
    const { messages } = await client.play('call abacus::add {"a":2,"b":3}\n---\nsay end');
    expect(resultOf(messages, "abacus::add")).toMatchObject({ is_error: false });
    expect(JSON.stringify(resultOf(messages, "abacus::add"))).toContain("5");
  });

  it("overrides demo::echo because it registered later, and demo serves again when it leaves", async () => {
    const echo = async (): Promise<string> => {
      const { messages } = await client.play('call demo::echo {"text":"who"}\n---\nsay end');
      return textOf(resultOf(messages, "demo::echo"));
    };
    expect(await echo()).toContain("who");
    await enrol("mocking", ["demo::echo"], () => ({ text: "mocked" }));
    await servedBy("demo::echo", "mocking");
    expect(await echo()).toContain("mocked");
    await store(instanceKey("mocking"), null, { "KV-Operation": "DEL" });
    await servedBy("demo::echo", "demo");
    expect(await echo()).not.toContain("mocked");
  });
});
