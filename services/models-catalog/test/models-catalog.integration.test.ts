// The whole models-catalog worker on a real bus, with its own login.
import { type Bus, connectBus } from "@flotilla/bus";
import { modelsGet, modelsList, modelsSupports, randomId } from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { runWorkers, type WorkersHandle } from "@flotilla/worker";
import { afterAll, beforeAll, expect, it } from "vitest";
import { definition } from "../src/worker.ts";

let nats: StartedNats;
let bus: Bus;
let running: WorkersHandle;

beforeAll(async () => {
  nats = await startNats();
  const logger = createLogger({ level: "error", name: "test" });
  bus = await connectBus({ url: nats.url, worker: "operator", instance: randomId(), logger });
  running = runWorkers({
    definitions: [definition],
    env: { NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile, LOG_LEVEL: "silent" },
  });
  await running.ready();
  await until(() => bus.registry.resolve(modelsGet.id)?.live, { what: "the caller has heard of the worker" });
});
afterAll(async () => {
  await running.stop();
  await bus.close();
  await nats.stop();
});

it("lists by provider and capability", async () => {
  const { models } = await bus.call(modelsList, { provider: "scripted", capability: "tools" });
  expect(models.map((model) => model.id)).toEqual(["play", "demo"]);
  expect((await bus.call(modelsList, { capability: "thinking:minimal" })).models).toEqual([]);
  expect((await bus.call(modelsList, {})).models.length).toBeGreaterThan(40);
});

it("gets one model as the contract says, and null for one it does not know", async () => {
  const play = await bus.callId("models::get", { provider: "scripted", model_id: "play" });
  expect(play).toMatchObject({ id: "play", pricing: { input_per_1m: 1, output_per_1m: 2 } });
  expect(play).not.toHaveProperty("source");
  expect(await bus.call(modelsGet, { provider: "scripted", model_id: "nope" })).toBeNull();
  expect(await bus.call(modelsGet, { provider: "nobody", model_id: "play" })).toBeNull();
});

it("says whether a model supports something, no for what it does not know", async () => {
  const ask = async (model_id: string, capability: string) =>
    (await bus.call(modelsSupports, { provider: "anthropic", model_id, capability })).supported;
  expect(await ask("claude-opus-4-5", "thinking:high")).toBe(true);
  expect(await ask("claude-opus-4-5", "thinking:xhigh")).toBe(false);
  expect(await ask("claude-opus-4-5", "flying")).toBe(false);
  expect(await ask("claude-nothing", "tools")).toBe(false);
});

it("does not start with an override file that cannot be used", async () => {
  const broken = runWorkers({
    definitions: [definition],
    env: {
      NATS_URL: nats.address,
      NATS_CREDENTIALS_FILE: nats.credentialsFile,
      LOG_LEVEL: "silent",
      FLOTILLA_MODELS_FILE: "absent-models.json",
    },
  });
  await expect(broken.ready()).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringContaining("FLOTILLA_MODELS_FILE"),
  });
});
