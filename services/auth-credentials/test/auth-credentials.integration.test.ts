// The whole auth-credentials worker on a real bus, with the users' real permissions.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bus, type CallOptions, connectBus, createEventLog } from "@flotilla/bus";
import { authGetToken, authListProviders, authStatus, randomId, streamNames, subjects } from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { definition } from "../src/worker.ts";

const secrets = {
  file: "sk-in-the-file-0123456789",
  environment: "sk-in-the-environment-0123456789",
  ownFile: "sk-in-a-file-of-its-own-0123456789",
};

let nats: StartedNats;
let home: string;
let running: WorkersHandle;
let operator: Bus;
let provider: Bus;
let policy: Bus;
const lines: string[] = [];

const logger = createLogger({ level: "error", name: "test" });
const connect = (worker: string, url: string): Promise<Bus> =>
  connectBus({ url, worker, instance: randomId(), logger });

beforeAll(async () => {
  nats = await startNats();
  home = await mkdtemp(join(tmpdir(), "flotilla-auth-"));
  await writeFile(join(home, "credentials.json"), JSON.stringify({ anthropic: secrets.file }), { mode: 0o600 });
  await writeFile(join(home, "groq-key"), `${secrets.ownFile}\n`, { mode: 0o600 });
  running = runWorkers({
    definitions: [definition],
    logger: createLogger({
      level: "trace",
      name: "test",
      destination: { write: (line: string) => lines.push(line) },
    }),
    env: {
      NATS_URL: nats.address,
      NATS_CREDENTIALS_FILE: nats.credentialsFile,
      FLOTILLA_HOME: home,
      ADMIN_PORT: "0",
      OPENAI_API_KEY: secrets.environment,
      GROQ_API_KEY_FILE: join(home, "groq-key"),
    },
  });
  await running.ready();
  operator = await connect("operator", nats.url);
  provider = await connect("provider-anthropic", nats.urlFor("provider-anthropic"));
  policy = await connect("policy", nats.urlFor("policy"));
});
afterAll(async () => {
  await running.stop();
  for (const bus of [operator, provider, policy]) await bus.close();
  await nats.stop();
  await rm(home, { recursive: true, force: true });
});

const getToken = (bus: Bus, name: string, options: CallOptions = {}) =>
  bus.call(authGetToken, { provider: name }, { timeoutMs: 5_000, ...options });
const audit = async () =>
  (
    await createEventLog<Record<string, unknown>>(operator, streamNames.audit).read(subjects.audit("auth-credentials"))
  ).map(({ record }) => record);

describe("a provider worker", () => {
  it.each([
    ["anthropic", secrets.file],
    ["openai", secrets.environment],
    ["groq", secrets.ownFile],
    ["lmstudio", "lm-studio"],
  ])("gets the credential of %s", async (name, key) => {
    expect(await getToken(provider, name)).toEqual({ type: "api_key", key });
  });

  it("gets null where there is none", async () => {
    expect(await getToken(provider, "mistral")).toBeNull();
  });

  it("gets a changed credential at once", async () => {
    await writeFile(join(home, "credentials.json"), JSON.stringify({ anthropic: "rotated" }));
    expect(await getToken(provider, "anthropic")).toEqual({ type: "api_key", key: "rotated" });
    await writeFile(join(home, "groq-key"), "rotated too");
    expect(await getToken(provider, "groq")).toEqual({ type: "api_key", key: "rotated too" });
  });

  it("gets an error that names the place when a secret's own file is gone", async () => {
    await rm(join(home, "groq-key"));
    await expect(getToken(provider, "groq")).rejects.toMatchObject({
      code: "CREDENTIALS_MISSING",
      message: "the credential in GROQ_API_KEY cannot be read",
    });
  });

  it("gets nothing under an idempotency key, which would keep the answer as a record", async () => {
    const key = `auth-credentials.${randomId()}`;
    await expect(getToken(provider, "openai", { idempotencyKey: key })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
  });
});

describe("anybody else", () => {
  it("is stopped by the bus, for example policy (I13)", async () => {
    await expect(getToken(policy, "openai")).rejects.toMatchObject({ code: "BUS_PERMISSION" });
  });

  it.each(["policy", "agent", "client", "operator", "provider-", "my-provider-x"])(
    "is refused by the worker too: %s (I13)",
    async (caller) => {
      await expect(getToken(operator, "openai", { caller })).rejects.toMatchObject({ code: "FORBIDDEN" });
    },
  );

  it("sees whether there is a credential and where from, never the credential", async () => {
    const status = (name: string) => operator.callId("auth::status", { provider: name });
    expect(await status("openai")).toEqual({ configured: true, source: "environment", label: "OPENAI_API_KEY" });
    expect(await status("anthropic")).toEqual({ configured: true, source: "stored", label: "credentials file" });
    expect(await operator.call(authStatus, { provider: "mistral" })).toEqual({ configured: false });
    const { providers } = await operator.call(authListProviders, {});
    expect(providers).toEqual(["anthropic", "groq", "openai", "openai-codex"]);
  });
});

describe("every use", () => {
  it("is in the audit stream, with who and what and without the secret", async () => {
    const before = (await audit()).length;
    await getToken(provider, "openai", { sessionId: "s-1", turnId: "t-1" });
    await getToken(provider, "xai");
    await expect(getToken(operator, "openai", { caller: "agent" })).rejects.toThrow();
    const common = { at: expect.any(Number), action: "auth::get_token" };
    const ids = { session_id: "s-1", turn_id: "t-1" };
    expect((await audit()).slice(before)).toEqual([
      { ...common, ...ids, caller: "provider-anthropic", provider: "openai", outcome: "given", source: "environment" },
      { ...common, caller: "provider-anthropic", provider: "xai", outcome: "absent" },
      { ...common, caller: "agent", provider: "openai", outcome: "refused" },
    ]);
  });

  it("leaves no secret in logs, audit records, outcome records or on the admin server (I13)", async () => {
    await getToken(provider, "openai");
    const pages = ["/readyz", "/metrics", "/livez"].map(async (page) => {
      const response = await fetch(`http://127.0.0.1:${running.adminPort}${page}`);
      return response.text();
    });
    const outcomes = await createEventLog(operator, streamNames.outcomes).read("$KV.OUTCOMES.auth-credentials.>");
    const log = lines.join("");
    const everything = [
      log,
      JSON.stringify(await audit()),
      JSON.stringify(outcomes),
      ...(await Promise.all(pages)),
    ].join("\n");
    expect(log).toContain("auth::get_token");
    for (const secret of Object.values(secrets)) expect(everything).not.toContain(secret);
  });
});

it("a broken file degrades readiness and changes nothing for providers", async () => {
  await writeFile(join(home, "credentials.json"), '{"anthropic": sk-broken}');
  const degraded = await until(async () => (await running.readiness()).workers[0]?.degraded?.[0], {
    what: "the broken file shows on readiness",
  });
  expect(degraded).toContain("the credentials file is no JSON; the last good one is in force");
  expect(await getToken(provider, "anthropic")).toEqual({ type: "api_key", key: "rotated" });
});
